"""Text extraction from documents, by content and not by file name, in worker processes with limits.

Only the assembly imports it.
"""
