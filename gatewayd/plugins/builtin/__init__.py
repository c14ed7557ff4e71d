"""Functions that come with the gateway, each a plugin like any other.

They are read as sources and loaded by the registry; nothing imports them. Beyond Python itself they use
pydantic and the `open_webui` names alone.
"""
