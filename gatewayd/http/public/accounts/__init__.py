"""Routes of accounts: sign-in, users, groups, permissions and API keys."""
