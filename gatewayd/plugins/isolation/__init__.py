"""Isolation of plugins in processes of their own, which protects the interpreter of the gateway.

The assembly imports `loader`. Only the process of a plugin imports `child` and `host_proxy`. See
gatewayd-plugins(7), ISOLATION.
"""
