"""Models of all sources: merged lists, lookup by id, and access control.

Imported by `pipeline`, `plugins` and everything above; imports only `completions` and the ground floor.
"""
