"""The control protocol: pydantic models without behaviour, owned by the client.

Imported by `gatewayctl` and by `gatewayd.http.control`.
"""
