"""SCIM PATCH: steps of operations, value selection, e-mail addresses, members."""
