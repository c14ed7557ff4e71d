"""The gateway daemon."""

__version__ = "0.1.0"
