"""Stored chats: messages are rows, rendered as the history tree of Open WebUI.

The pipeline, the adapters and the HTTP layer may import this package.
"""
