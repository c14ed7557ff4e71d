"""Tests for gatewayd.pipeline.responses.reply_bodies."""

import pytest

from gatewayd.pipeline.responses import reply_bodies
from gatewayd.pipeline.responses.reply_bodies import decode_reply, examined
from tests.gatewayd.pipeline.filters.test_streams import Reads


async def test_a_body_is_examined_as_a_whole_before_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    async def examine(raw: bytes) -> None:
        seen.append(raw)

    body = examined(Reads([b"ab", b"c"], "application/json"), examine)
    assert await anext(body) == b"ab"
    assert seen == [b"abc"]
    assert [read async for read in body] == [b"c"]
    monkeypatch.setattr(reply_bodies, "MAX_WHOLE_BYTES", 2)
    longer = examined(Reads([b"ab", b"c", b"d"], "application/json"), examine)
    assert [read async for read in longer] == [b"ab", b"c", b"d"]
    assert seen == [b"abc"]


async def test_what_is_invalid_or_too_deep_has_no_value() -> None:
    assert await decode_reply(b' {"a": 1}\n') == {"a": 1}
    assert await decode_reply(b"{") is None
    assert await decode_reply(b"[" * 5000 + b"]" * 5000) is None
