"""SCIM filters: grammar, syntax tree, compilation to conditions."""
