"""Provisioning by identity providers: SCIM 2.0 (RFC 7643, RFC 7644; interface specification 2.1-2.3, 4.10).

Knows nothing of HTTP or SQL. Imported by `assembly`, `http` and `storage`; stands on `accounts`, whose
rules hold here too.
"""
