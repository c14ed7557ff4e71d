"""The gateway daemon."""

__version__ = "0.1.0"

# The date of this version, as mdoc(7) writes it; every manual page carries it.
__released__ = "November 24, 2026"
