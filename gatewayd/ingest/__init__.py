"""Document ingestion: store an upload, queue it, extract its text, cut chunks, embed and publish them.

May be imported by `knowledge`, `pipeline`, the adapters and the edge; imports `accounts` and the modules on
the lowest layers (transactions, tasks, errors, ids).
"""
