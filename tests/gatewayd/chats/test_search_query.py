"""Tests for gatewayd.chats.search_query."""

from typing import Any

import pytest

from gatewayd.chats.records import ChatQuery
from gatewayd.chats.search_query import read_search


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", {}),
        (" two  words ", {"text": "two words"}),
        ("tag:A_b x tag:c", {"text": "x", "tags": ("a_b", "c")}),
        ("pinned:true shared:FALSE", {"pinned": True, "shared": False}),
        ("archived:true x", {"archived": True, "text": "x"}),
        ("pinned:maybe tag: colour:true", {"text": "pinned:maybe tag: colour:true"}),
        ("https://example.org", {"text": "https://example.org"}),
    ],
)
def test_tokens(text: str, query: dict[str, Any]) -> None:
    assert read_search(text) == ChatQuery(**{"archived": False, **query})
