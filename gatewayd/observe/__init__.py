"""Logging, audit, and talk with the service manager.

Imported by `daemon` and `command` only.
"""
