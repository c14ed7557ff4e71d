"""Plugins: loading, valves, calls, isolation, and the `open_webui` modules that plugins import.

May be imported by pipeline, knowledge, chats, plugin_host, the adapters and http.
"""
