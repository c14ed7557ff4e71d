"""Tests for gatewayd.storage.chat_sizes."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage import chat_sizes
from gatewayd.storage.chat_sizes import MEASURE_INTERVAL_BYTES, ChatSizes, size_of_text
from gatewayd.text import storable

MOST = 100
"""Bytes that a chat may hold here."""


class Measures:
    """Stands for chats of one size, and counts how often one is measured."""

    def __init__(self) -> None:
        self.size = MOST
        self.measured = 0

    async def measure(self, chat_id: str) -> int:
        self.measured += 1
        return self.size


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> Measures:
    made = Measures()
    monkeypatch.setattr(chat_sizes, "size_of_chat", made.measure)
    monkeypatch.setattr(chat_sizes, "MAX_CHAT_BYTES", MOST)
    return made


async def test_a_chat_is_measured_once_for_so_many_bytes(measures: Measures) -> None:
    sizes = ChatSizes()
    for _ in range(8 * 64):
        await sizes.check("c", MEASURE_INTERVAL_BYTES // 64)
        await sizes.check("other", 1)
    assert measures.measured == 8
    for expected in (9, 10):
        await sizes.check("c", MEASURE_INTERVAL_BYTES)
        assert measures.measured == expected


async def test_a_full_chat_takes_no_event_for_a_while(
    measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures.size = MOST + 1
    sizes = ChatSizes()
    await sizes.check("c", MEASURE_INTERVAL_BYTES - 1)
    for _ in range(3):
        with pytest.raises(GatewayError, match="its messages hold over") as caught:
            await sizes.check("c", 1)
        assert caught.value.kind is ErrorKind.TOO_LARGE
    assert measures.measured == 1
    await sizes.check("other", 1)
    # When the while is over, the next event is measured, however short it is.
    monkeypatch.setattr(chat_sizes, "FULL_SECONDS", 0.0)
    for expected in (2, 3):
        with pytest.raises(GatewayError, match="its messages hold over"):
            await sizes.check("d", MEASURE_INTERVAL_BYTES if expected == 2 else 1)
        assert measures.measured == expected
    measures.size = MOST
    await sizes.check("d", 1)
    await sizes.check("d", 1)
    assert measures.measured == 4


async def test_the_chat_of_the_oldest_event_is_forgotten(
    measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_sizes, "MAX_COUNTED_CHATS", 2)
    sizes = ChatSizes()
    half = MEASURE_INTERVAL_BYTES // 2
    for chat_id in ("a", "b", "c", "b", "a", "b"):
        await sizes.check(chat_id, half)
    # "a" was forgotten for "c", and "c" for "a".
    assert measures.measured == 1
    await sizes.check("a", half)
    assert measures.measured == 2


def test_the_size_of_a_text_is_never_too_small() -> None:
    for text in ("", "abc", "ü", "漢", "😀", "a\x00"):
        assert size_of_text(text) >= len(storable(text).encode())
