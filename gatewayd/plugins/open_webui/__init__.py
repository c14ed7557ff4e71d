"""The import names `open_webui` and below, for plugins that were written for it.

They reach the gateway through a `Host` alone. May be imported by plugins; `catalogue` by documentation too.
"""
