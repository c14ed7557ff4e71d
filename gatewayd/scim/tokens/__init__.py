"""SCIM tokens: their check, their file and their rotation."""
