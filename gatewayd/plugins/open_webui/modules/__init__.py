"""Implementations of the `open_webui` modules."""
