"""Codecs between the chat protocols and the internal request format, without I/O.

Imported by `http`, `upstream` and `daemon`; awaits nothing.
"""
