"""The control protocol: pydantic models without behaviour and the route table, owned by the client.

Imported by `gatewayctl` and by `gatewayd.http.control`.
"""
