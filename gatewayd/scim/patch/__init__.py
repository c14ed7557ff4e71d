"""SCIM PATCH: steps, value selection, members, e-mail addresses."""
