"""Tests for gatewayd.dialects.content_parts."""

from collections.abc import Mapping
from typing import Any

import pytest

from gatewayd.dialects.content_parts import media_url, read_parts, refused_part
from gatewayd.errors import GatewayError


def read(content: Any) -> list[dict[str, Any]]:
    def read_media(part: Mapping[str, Any], where: str) -> dict[str, Any]:
        if part.get("type") not in ("image_url", "file"):
            raise refused_part(part.get("type"), where)
        return {"media": media_url(part)}

    return read_parts(content, "messages[0].content", read_media)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, []),
        ("a", [{"text": "a"}]),
        (["a", {"type": "text", "text": ""}], [{"text": "a"}, {"text": ""}]),
        ([{"type": "refusal", "refusal": "no"}], [{"text": "no"}]),
        ([{"type": "image_url", "image_url": "u"}], [{"media": "u"}]),
        ([{"type": "image_url", "image_url": {"url": "u"}}], [{"media": "u"}]),
        ([{"type": "file", "file": {"file_data": "d"}}, {"type": "file"}], [{"media": "d"}, {"media": None}]),
    ],
)
def test_parts_of_a_content(content: Any, parts: list[dict[str, Any]]) -> None:
    assert read(content) == parts


@pytest.mark.parametrize(
    ("content", "param"),
    [
        (7, "messages[0].content"),
        ({"type": "text"}, "messages[0].content"),
        (["a", 7], "messages[0].content[1]"),
        ([{"type": "text", "text": None}], "messages[0].content[0].text"),
        ([{"type": "refusal", "text": "a"}], "messages[0].content[0].refusal"),
        ([{"type": ["text"], "text": "a"}], "messages[0].content[0].type"),
        ([{"text": "a"}], "messages[0].content[0].type"),
    ],
)
def test_a_malformed_part_is_named(content: Any, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read(content)
    assert caught.value.param == param
