"""Pure codecs between the chat protocols and the one internal language; values in, values out.

Imported by `http`, `upstream` and `daemon`; does no I/O and awaits nothing.
"""
