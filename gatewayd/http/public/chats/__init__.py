"""Stored chats: routes, bodies, lists."""
