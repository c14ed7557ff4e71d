"""SCIM queries over users and groups: predicates, columns, identity look-ups."""
