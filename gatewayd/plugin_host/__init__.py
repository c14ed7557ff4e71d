"""Implementation of the plugin host: the interfaces that plugins call, over the services of the gateway.

May be imported by the assembly.
"""
