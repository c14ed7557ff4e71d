"""The chat pipeline: model, filters, attachments, source, stream.

Imported by `dialects`, `http` and `daemon`; imports `accounts`, `catalog` and below.
"""
