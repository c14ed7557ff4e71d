"""Routes of stored chats, and the models of their bodies."""
