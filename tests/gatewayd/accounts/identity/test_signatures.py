"""Tests for gatewayd.accounts.identity.signatures."""

import base64

import pytest

from gatewayd.accounts.identity.signatures import read_header, verify
from gatewayd.errors import GatewayError


@pytest.mark.parametrize(
    "key", [{"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, {"kty": "EC", "crv": "P-256"}, {"kty": "EC"}]
)
def test_a_key_of_the_provider_that_cannot_be_used(key: dict[str, str]) -> None:
    head = base64.urlsafe_b64encode(b'{"alg":"ES256"}').decode().rstrip("=")
    token = f"{head}.e30.AAAA"
    with pytest.raises(GatewayError, match="its signature is not valid"):
        verify(token, read_header(token, ["ES256"]), [key])
