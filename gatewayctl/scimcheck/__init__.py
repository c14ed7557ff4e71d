"""What an identity provider does first, tried against a running gateway, each failure explained.

Speaks SCIM over HTTP(S), not the control protocol. Imported by `commands` only.
"""
