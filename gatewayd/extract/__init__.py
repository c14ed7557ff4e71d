"""Documents to text, by what they hold and not by how they are called; run in worker processes with limits.

Imported by the assembly alone.
"""
