"""Events: what their types mean, who hears them, and calls that wait for a user.

May be imported by plugins, chat, the adapters and the edge.
"""
