"""Accounts and access: users, groups, permissions, keys, sessions, passwords.

`plugins`, `pipeline` and the packages above them import it; it imports only the ground floor.
"""
