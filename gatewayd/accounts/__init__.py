"""Who may do what: users, groups, permissions, keys, sessions, passwords.

Imported by `chat`, `scim`, `knowledge`, `http`, `storage` and `daemon`; imports only `tasks`, `errors` and `ids`.
"""
