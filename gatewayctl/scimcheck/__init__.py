"""SCIM check: the first requests of an identity provider, tried against a gateway, with explained failures.

Speaks SCIM over HTTP(S), not the control protocol. Imported by `commands` only.
"""
