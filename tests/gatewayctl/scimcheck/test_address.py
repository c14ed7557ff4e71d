"""The base address."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.scimcheck.address import read_base


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://chat.example.org", "https://chat.example.org/api/v1/scim/v2"),
        (" https://chat.example.org/ ", "https://chat.example.org/api/v1/scim/v2"),
        ("https://chat.example.org/api/v1/scim/v2/", "https://chat.example.org/api/v1/scim/v2"),
        ("https://chat.example.org:8443/chat", "https://chat.example.org:8443/chat/api/v1/scim/v2"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/api/v1/scim/v2"),
        ("http://[::1]", "http://[::1]/api/v1/scim/v2"),
        ("https://other.example.org/SCIM/v2", "https://other.example.org/SCIM/v2"),
    ],
)
def test_a_site_or_the_whole_address(text: str, url: str) -> None:
    assert read_base(text).url == url


@pytest.mark.parametrize(
    ("text", "is_open"),
    [("https://h", False), ("http://h", True), ("http://localhost", False), ("http://[::1]:8080", False)],
)
def test_the_token_must_not_travel_in_the_open(text: str, is_open: bool) -> None:
    assert read_base(text).is_open is is_open


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("chat.example.org", "expected https://HOST"),
        ("ftp://h", "expected https://HOST"),
        ("https://", "expected https://HOST"),
        ("https://u:p@h", "user name or password"),
        ("https://h:x", "port is no number"),
        ("https://h/?a", "more than a path"),
        ("https://h/#a", "more than a path"),
    ],
)
def test_bad_addresses(text: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason) as caught:
        read_base(text)
    assert caught.value.kind == "usage"
