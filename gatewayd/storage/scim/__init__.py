"""SCIM queries of users and groups: predicates, columns and identity look-ups."""
