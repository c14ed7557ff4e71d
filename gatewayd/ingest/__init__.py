"""From an upload to searchable passages: accept, queue, extract, chunk, embed, publish.

May be imported by `knowledge`, `chat`, the adapters and the edge; imports accounts, commits, tasks, errors,
ids.
"""
