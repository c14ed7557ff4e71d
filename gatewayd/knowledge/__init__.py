"""Collections of files, the search in them, and the citations of what was found.

May be imported by `chat`, the adapters and the edge; imports `ingest`, accounts, catalog and what is below.
"""
