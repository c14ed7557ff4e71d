"""Which models exist: merge the sources, find one by id, decide who may use it.

Imported by `chat`, `plugins` and everything above; imports only `tasks`, `errors` and `ids`.
"""
