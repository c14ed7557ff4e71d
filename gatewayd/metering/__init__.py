"""Metering of the calls of models: who asked which model, what it took, and what it cost.

Nothing here does I/O. The callers of sources (`pipeline`) report to the `CallMeter`; observers and admissions
are given to it by the assembly.
"""
