"""Collections of files, retrieval from them, and citations of the retrieved passages.

May be imported by `pipeline`, the adapters and the edge; imports `ingest`, `accounts`, `catalog` and the
modules on the layers below.
"""
