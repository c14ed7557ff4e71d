"""Tests for gatewayd.pipeline.responses.ids."""

import time
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from gatewayd import ids
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.responses import reply_bodies
from gatewayd.pipeline.responses.ids import (
    KEPT_SECONDS,
    MAX_ID_CHARACTERS,
    RememberedAnswer,
    ResponseIds,
    ResponseRecipient,
)
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.response_ids import MemoryResponseIds
from tests.gatewayd.pipeline.filters.test_streams import Reads

JSON = "application/json"
ANN, BOB = ResponseRecipient("u1", "q1"), ResponseRecipient("u2", "q2")


def known_by(store: MemoryResponseIds) -> ResponseIds:
    return ResponseIds(store, DeferredWrites(TaskRegistry()))


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


async def remembered(reads: Sequence[bytes], content_type: str = "text/event-stream") -> set[str]:
    """Return which of the ids r, i and k of an answer the user has received, when its bytes have passed."""
    store = MemoryResponseIds()
    answer = RememberedAnswer(Reads(reads, content_type), known_by(store), ANN)
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
    answer = RememberedAnswer(Reads([created, over]), known_by(store), ANN)
    await anext(answer)
    assert not store.kept
    assert await anext(answer) == over
    assert len(store.kept) == 2
    await answer.aclose()


async def test_a_large_whole_answer_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_bodies, "MAX_WHOLE_BYTES", 10)
    assert await remembered([b'{"id": "r",', b' "output"', b": []}"], JSON) == set()


async def test_ids_of_others_are_unknown() -> None:
    known = known_by(MemoryResponseIds())
    long = "x" * (MAX_ID_CHARACTERS + 1)
    await known.remember(["r", "i", long], ANN)
    await known.remember(["r"], BOB)
    body = {"previous_response_id": "r", "input": [{"id": "i"}]}
    await known.check(body, "u1")
    await known.check({"input": "a"}, "u2")
    for user, asked, kind in (
        ("u2", body, ErrorKind.INVALID_REQUEST),
        ("u2", {"input": [{"id": "i"}]}, ErrorKind.NOT_FOUND),
        ("u1", {"conversation": "c"}, ErrorKind.NOT_FOUND),
        ("u1", {"previous_response_id": long}, ErrorKind.INVALID_REQUEST),
        ("u1", {"input": [{"id": "i"}] * 10_001}, ErrorKind.INVALID_REQUEST),
    ):
        with pytest.raises(GatewayError) as caught:
            await known.check(asked, user)
        assert caught.value.kind is kind


async def test_ids_are_forgotten_after_thirty_days() -> None:
    now = 1
    known = ResponseIds(MemoryResponseIds(), DeferredWrites(TaskRegistry()), lambda: now, lambda: now)
    await known.remember(["r"], ANN)
    now += KEPT_SECONDS
    assert await known.prune() == 0
    now += 1
    assert await known.prune() == 1


async def test_a_clock_that_is_set_ahead_forgets_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_by(MemoryResponseIds())
    await known.remember(["r"], ANN)
    ahead = time.time() + 2 * KEPT_SECONDS
    monkeypatch.setattr(time, "time", lambda: ahead)
    assert await known.prune() == 0


WHOLE = (JSON, [b'{"id": "r", "output": []}'])
STREAM = ("text/event-stream", [b"data: {}\n\n", event("response.completed", response={"id": "r"})])


@pytest.mark.parametrize(("content_type", "reads"), [WHOLE, STREAM])
async def test_ids_that_the_database_cannot_take_now_are_known_and_stored_later(
    content_type: str, reads: list[bytes]
) -> None:
    store, deferred = MemoryResponseIds(), DeferredWrites(TaskRegistry())
    known = ResponseIds(store, deferred)
    store.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
    answer = RememberedAnswer(Reads(reads, content_type), known, ANN)
    assert [read async for read in answer] == reads
    await known.check({"previous_response_id": "r"}, "u1")
    with pytest.raises(GatewayError, match="cannot find response"):
        await known.check({"previous_response_id": "r"}, "u2")
    with pytest.raises(GatewayError, match="away"):
        await known.check({"previous_response_id": "r", "input": [{"id": "other"}]}, "u1")
    store.outage = None
    # Whoever comes later does not get what waits to be stored for somebody else.
    await known.remember(["r"], BOB)
    await deferred.close(5)
    assert [owner for owner, _ in store.kept.values()] == ["u1"]
    store.kept.clear()
    with pytest.raises(GatewayError, match="cannot find response"):
        await known.check({"previous_response_id": "r"}, "u1")


async def test_an_answer_passes_also_when_its_ids_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryResponseIds()
    store.outage = GatewayError(ErrorKind.INTERNAL, "cannot write: it is damaged")
    answer = RememberedAnswer(Reads(WHOLE[1], JSON), known_by(store), ANN)
    assert [read async for read in answer] == WHOLE[1]
    [line] = caplog.records
    assert (line.levelname, line.__dict__["request_id"]) == ("ERROR", "q1")
