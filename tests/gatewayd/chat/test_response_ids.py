"""Tests for gatewayd.chat.response_ids."""

import time
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from gatewayd import ids
from gatewayd.chat import response_ids
from gatewayd.chat.response_ids import KEPT_SECONDS, MAX_ID_CHARACTERS, RememberedAnswer, ResponseIds
from gatewayd.errors import GatewayError, Kind
from tests.fakes.response_ids import MemoryResponseIds
from tests.gatewayd.chat.test_filtered_streams import Reads

JSON = "application/json"


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


async def remembered(reads: Sequence[bytes], content_type: str = "text/event-stream") -> set[str]:
    """Return which of the ids r, i and k of an answer the user has received, when its bytes have passed."""
    store = MemoryResponseIds()
    answer = RememberedAnswer(Reads(reads, content_type), ResponseIds(store), "u1")
    assert [read async for read in answer] == list(reads)
    owners = await store.owners([ids.digest(each) for each in "rik"])
    return {each for each in "rik" if owners.get(ids.digest(each)) == "u1"}


async def test_the_ids_of_a_whole_answer() -> None:
    reads = [b'{"id": "r", "output": [{"id": "i"}', b', {"id": "k"}]}']
    assert await remembered(reads, JSON) == {"r", "i", "k"}
    assert await remembered([b'{"id": "r"'], JSON) == set()


async def test_the_ids_of_a_stream_are_known_before_its_end_passes() -> None:
    created = event("response.created", response={"id": "r", "output": []})
    done = event("response.output_item.done", item={"id": "i"})
    over = event("response.completed", response={"id": "r", "output": [{"id": "k"}]})
    assert await remembered([created, b'data: {"id": "k"}\n\n', done + over]) == {"r", "i", "k"}
    assert await remembered([created + done, b"data: [DONE]\n\n"]) == {"r", "i"}
    store = MemoryResponseIds()
    answer = RememberedAnswer(Reads([created, over]), ResponseIds(store), "u1")
    await anext(answer)
    assert not store.kept
    assert await anext(answer) == over
    assert len(store.kept) == 2
    await answer.aclose()


async def test_a_large_whole_answer_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_ids, "MAX_WHOLE_BYTES", 10)
    assert await remembered([b'{"id": "r",', b' "output"', b": []}"], JSON) == set()


async def test_ids_of_others_are_unknown() -> None:
    known = ResponseIds(MemoryResponseIds())
    long = "x" * (MAX_ID_CHARACTERS + 1)
    await known.remember(["r", "i", long], "u1")
    await known.remember(["r"], "u2")
    body = {"previous_response_id": "r", "input": [{"id": "i"}]}
    await known.check(body, "u1")
    await known.check({"input": "a"}, "u2")
    for user, asked, kind in (
        ("u2", body, Kind.INVALID_REQUEST),
        ("u2", {"input": [{"id": "i"}]}, Kind.NOT_FOUND),
        ("u1", {"conversation": "c"}, Kind.NOT_FOUND),
        ("u1", {"previous_response_id": long}, Kind.INVALID_REQUEST),
        ("u1", {"input": [{"id": "i"}] * 10_001}, Kind.INVALID_REQUEST),
    ):
        with pytest.raises(GatewayError) as caught:
            await known.check(asked, user)
        assert caught.value.kind is kind


async def test_ids_are_forgotten_after_thirty_days() -> None:
    now = 1
    known = ResponseIds(MemoryResponseIds(), lambda: now, lambda: now)
    await known.remember(["r"], "u1")
    now += KEPT_SECONDS
    assert await known.prune() == 0
    now += 1
    assert await known.prune() == 1


async def test_a_clock_that_is_set_ahead_forgets_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ResponseIds(MemoryResponseIds())
    await known.remember(["r"], "u1")
    ahead = time.time() + 2 * KEPT_SECONDS
    monkeypatch.setattr(time, "time", lambda: ahead)
    assert await known.prune() == 0
