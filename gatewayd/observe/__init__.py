"""Logging, health, and notification of the service manager.

Imported by `daemon` and `command` only.
"""
