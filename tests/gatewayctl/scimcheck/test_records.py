"""Answers."""

import pytest

from gatewayctl.scimcheck.records import ScimAnswer


@pytest.mark.parametrize(
    ("body", "resource"), [(b'{"a": 1}', {"a": 1}), (b"[]", {}), (b"", {}), (b"\xff", {}), (b"{", {})]
)
def test_a_body_is_an_object_or_nothing(body: bytes, resource: dict[str, int]) -> None:
    assert ScimAnswer(200, {}, body).resource == resource


@pytest.mark.parametrize(
    ("headers", "body", "is_html"),
    [
        ({"content-type": "text/html"}, b"", True),
        ({"content-type": "application/xhtml+xml"}, b"x", True),
        ({}, b"\n<!doctype html>", True),
        ({"content-type": "application/scim+json"}, b"{}", False),
        ({}, b"", False),
    ],
)
def test_pages_for_people(headers: dict[str, str], body: bytes, is_html: bool) -> None:
    assert ScimAnswer(200, headers, body).is_html is is_html
