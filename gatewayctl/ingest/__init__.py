"""Synchronisation of a collection with a directory: scan, upload, wait, removal.

Imported by `commands` only.
"""
