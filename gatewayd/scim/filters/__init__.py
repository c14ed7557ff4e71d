"""SCIM filters: grammar, meaning, conditions."""
