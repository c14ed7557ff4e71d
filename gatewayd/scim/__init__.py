"""Provisioning by identity providers: SCIM 2.0 (RFC 7643, RFC 7644; gatewayd-scim(7)).

Knows nothing of HTTP or SQL. Imported by `assembly`, `http` and `storage`; stands on `accounts`, whose
rules hold here too.
"""
