"""The modules of `open_webui` that plugins import, a module each."""
