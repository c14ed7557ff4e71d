"""Tests for gatewayd.chats.tags; tests/gatewayd/http/public/chats/test_routes.py covers the service."""

import pytest

from gatewayd.chats.records import Tag
from gatewayd.chats.tags import make_tag, render_tag, tag_id
from gatewayd.errors import GatewayError


def test_ids() -> None:
    assert [tag_id(name) for name in ("A", " Water Birds ", "x" * 300)] == ["a", "water_birds", "x" * 255]


def test_a_tag() -> None:
    tag = make_tag("u", " Water Birds ")
    assert tag == Tag("water_birds", "Water Birds", "u")
    assert render_tag(tag) == {"id": "water_birds", "name": "Water Birds", "user_id": "u", "meta": None}


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 256])
def test_bad_names(name: str) -> None:
    with pytest.raises(GatewayError, match="cannot accept name"):
        make_tag("u", name)
