"""Stored chats: their messages as rows, rendered as the tree that clients know.

May be imported by chat, the adapters and the edge.
"""
