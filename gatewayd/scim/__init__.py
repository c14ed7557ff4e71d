"""Provisioning by identity providers: SCIM 2.0 (RFC 7643, RFC 7644; gatewayd-scim(7)).

The package contains neither HTTP nor SQL. `assembly`, `http` and `storage` import it. It uses the services of
`accounts`, whose rules apply here too.
"""
