"""Foreign code: loaded, configured by valves, called with what it asks for, and kept from harming the rest.

May be imported by chats, chat, the adapters and the edge.
"""
