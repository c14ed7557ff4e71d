"""Command line of the gateway; imports nothing of the daemon."""

__version__ = "0.1.0"
