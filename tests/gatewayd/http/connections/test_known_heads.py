"""Tests for gatewayd.http.connections.known_heads."""

from typing import Any

import pytest
from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from gatewayd.http.connections.known_heads import remember_head

NAMES = ((b"Host", b"a"), (b"Content-Length", b"7"), (b"Authorization", b"Bearer k"))


def head(names: tuple[tuple[bytes, bytes], ...] = NAMES, **changes: Any) -> RawRequestMessage:
    """Return the head of a request as aiohttp parses it."""
    headers = CIMultiDictProxy(CIMultiDict({name.decode(): value.decode() for name, value in names}))
    plain = RawRequestMessage(
        "POST", "/fast", HttpVersion11, headers, names, False, None, False, False, URL("/fast")
    )
    return plain._replace(**changes)


def changed(place: int, name: bytes, value: bytes) -> RawRequestMessage:
    return head((*NAMES[:place], (name, value), *NAMES[place + 1 :]))


def test_a_head_comes_again_with_any_length_of_its_body() -> None:
    known = remember_head(head(), "k")
    assert known.credential == "k"
    assert known.is_of(head())
    assert known.is_of(changed(1, b"Content-Length", b"8"))


@pytest.mark.parametrize(
    "other",
    [
        changed(1, b"Transfer-Encoding", b"chunked"),
        changed(1, b"Origin", b"https://evil.example.org"),
        changed(2, b"Authorization", b"Bearer other"),
        changed(0, b"Host", b"b"),
        head((*NAMES, (b"Origin", b"https://evil.example.org"))),
        head(NAMES[:2]),
        head(()),
        head(method="PUT"),
        head(path="/other"),
        head(version=HttpVersion10),
        head(should_close=True),
        head(upgrade=True),
        object(),
    ],
)
def test_every_other_head_is_another_one(other: object) -> None:
    assert not remember_head(head(), "k").is_of(other)


def test_a_head_without_a_body_is_compared_whole() -> None:
    known = remember_head(head(NAMES[::2]), "k")
    assert known.is_of(head(NAMES[::2]))
    assert not known.is_of(head())
    assert not known.is_of(head(NAMES[:1]))
