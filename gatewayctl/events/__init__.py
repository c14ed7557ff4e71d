"""Events and chats on the terminal: events as lines, chats as text, answers to calls.

Imported by `gatewayctl.commands` only.
"""
