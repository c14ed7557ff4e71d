"""Tests for gatewayd.dialects.boundaries."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.dialects.boundaries import WholeEvents
from gatewayd.errors import GatewayError, Kind

STREAM = b"event: a\ndata: 1\n\n: hm\r\n\r\ndata: 2\r\rdata: 3\r\n\ndata: 4"


@given(st.lists(st.integers(0, len(STREAM))))
def test_nothing_is_lost_and_output_ends_between_events_however_it_is_split(cuts: list[int]) -> None:
    events, out = WholeEvents(), b""
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        whole = events.feed(STREAM[start:end])
        assert whole == b"" or whole.endswith((b"\n\n", b"\n\r\n", b"\r\r"))
        out += whole
    assert out == STREAM[: -len(b"data: 4")]
    assert out + events.finish() == STREAM


def test_an_event_is_held_until_it_is_whole() -> None:
    events = WholeEvents()
    assert events.feed(b"data: 1\n") == b""
    assert events.feed(b"\ndata: 2") == b"data: 1\n\n"
    assert events.feed(b"\r\n\r") == b""
    assert events.feed(b"\n") == b"data: 2\r\n\r\n"
    assert events.finish() == b""


def test_an_endless_event_is_a_failure() -> None:
    events = WholeEvents(limit=10)
    assert events.feed(b"data: 1\n\n" * 5 + b"0123456789") == b"data: 1\n\n" * 5
    with pytest.raises(GatewayError) as caught:
        events.feed(b"0")
    assert caught.value.kind is Kind.UPSTREAM_FAILED
