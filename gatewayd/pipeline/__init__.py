"""The chat pipeline: from model lookup, filters and attachments to the source and its stream.

Imported by `dialects`, `http` and `daemon`; imports `accounts`, `catalog` and below.
"""
