"""Who may do what: users, groups, permissions, keys, sessions, passwords.

Imported by `chat` and everything above it; imports only `tasks`, `errors` and `ids`.
"""
