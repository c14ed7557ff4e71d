"""Model sources over HTTP: hosted, runtime, built-in; the only HTTP client of the daemon.

Imported by `daemon` only; implements `catalog.interfaces.ModelSource`.
"""
