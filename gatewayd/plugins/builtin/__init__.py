"""Built-in functions, loaded like any other plugin: gatewayd-plugins(7), BUILT-IN FUNCTIONS.

The registry reads their sources; nothing imports them. Besides the standard library they use only pydantic
and the `open_webui` modules.
"""
