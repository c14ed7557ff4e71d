"""Accounts: sign-in, users, groups, permissions, keys."""
