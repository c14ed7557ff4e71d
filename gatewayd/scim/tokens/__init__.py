"""SCIM tokens: the credential, its file, its rotation."""
