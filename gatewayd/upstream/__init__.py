"""Model sources over HTTP: hosted providers, runtimes, the built-in model. The only HTTP client of the daemon.

Imported by `daemon` only; implements `catalog.interfaces.ModelSource`.
"""
