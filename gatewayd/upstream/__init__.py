"""Clients of other servers: model providers, tool servers, services; the only HTTP client of the daemon.

Imported by `assembly` and `builtin_model`; implements `catalog.interfaces.ModelSource`.
"""
