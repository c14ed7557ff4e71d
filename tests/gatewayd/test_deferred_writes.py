"""Tests for gatewayd.deferred_writes."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from gatewayd import deferred_writes
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.write_attempt import DeferredWrite

SOON = 5.0
AWAY = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: the database is away")
KEY = ("c", "m")
OTHER = ("c", "n")


class Store:
    """Takes writes unless it is away, and remembers them."""

    def __init__(self) -> None:
        self.failures: dict[Any, Exception] = {}
        self.written: list[Any] = []
        self.superseded: list[Any] = []
        self.attempts = 0
        self.tasks = TaskRegistry()
        self.deferred = DeferredWrites(self.tasks, lambda: 0.0)

    async def put(
        self,
        value: Any,
        key: tuple[str, str] = KEY,
        size: int = 2,
        *,
        owner: str = "",
        is_answer: bool = False,
    ) -> DeferredWrite | None:
        async def work(is_superseded: bool) -> None:
            self.attempts += 1
            failure = self.failures.get(value) or self.failures.get("*")
            if failure is not None:
                raise failure
            self.written.append(value)
            if is_superseded:
                self.superseded.append(value)

        return await self.deferred.write(
            key, work, "x" * (size - 2), owner=owner or str(value), is_answer=is_answer
        )

    async def attempted(self, times: int) -> None:
        while self.attempts < times:
            await asyncio.sleep(0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Sequence[float]:
    """Let pauses pass at once, and return those that are longer than nothing."""
    asked: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds:
            asked.append(seconds)
        await sleep(0)

    monkeypatch.setattr(deferred_writes.asyncio, "sleep", pause)
    return asked


@pytest.fixture
def store() -> Store:
    return Store()


async def test_a_write_that_succeeds_is_not_kept(store: Store) -> None:
    assert await store.put(1) is None
    await asyncio.sleep(0)
    assert (store.written, store.deferred.count, store.tasks.list()) == ([1], 0, {})


async def hanging(
    store: Store, released: asyncio.Event, failure: GatewayError | None
) -> DeferredWrite | None:
    """Write what does not end until it is released, for a caller without patience."""

    async def work(_: bool) -> None:
        store.attempts += 1
        if store.attempts == 1:
            await released.wait()
            if failure is not None:
                raise failure
        store.written.append(store.attempts)

    return await store.deferred.write(KEY, work, "x", owner="u1")


@pytest.mark.parametrize("failure", [None, AWAY])
async def test_a_write_that_hangs_keeps_nobody_waiting_and_is_done_once(
    failure: GatewayError | None, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)
    released = asyncio.Event()
    kept = await asyncio.wait_for(hanging(store, released, failure), SOON)
    assert kept is not None
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", SOON)
    next_one = await store.put("next")
    assert next_one is not None
    released.set()
    assert await asyncio.wait_for(next_one.wait(), SOON)
    assert kept.is_stored
    assert store.written == ([2, "next"] if failure else [1, "next"])


async def test_the_end_stops_first_attempts_that_hang(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", 0.0)
    assert await hanging(store, asyncio.Event(), None) is not None
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", SOON)
    await store.deferred.close(0)
    async with asyncio.timeout(SOON):
        while store.tasks.list():
            await asyncio.sleep(0)
    assert (store.written, store.deferred.count) == ([], 0)
    assert caplog.text.count("a write to a message is lost: the gateway stops") == 1


async def test_a_caller_who_is_cancelled_takes_its_write_back(store: Store) -> None:
    released = asyncio.Event()
    caller = asyncio.ensure_future(hanging(store, released, None))
    await store.attempted(1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    released.set()
    await asyncio.sleep(0)
    assert (store.written, store.deferred.count, store.tasks.list()) == ([], 0, {})


async def test_what_cannot_be_stored_is_stored_later_in_its_order(
    store: Store, pauses: Sequence[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store.failures["*"] = AWAY
    kept = [await store.put(number) for number in range(3)]
    # Only the first was tried: the others would overtake it.
    assert (store.attempts, store.deferred.is_pending(KEY), store.deferred.is_pending(OTHER)) == (
        1,
        True,
        False,
    )
    await store.attempted(10)
    del store.failures["*"]
    kept.append(await store.put(3))
    assert [await write.wait() for write in kept if write is not None] == [True] * 4
    assert store.written == [0, 1, 2, 3]
    assert pauses[:7] == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    await asyncio.sleep(0)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert store.tasks.list() == {}


async def test_chance_takes_up_to_half_of_a_pause_away(store: Store, pauses: Sequence[float]) -> None:
    store.deferred = DeferredWrites(store.tasks, lambda: 1.0)
    store.failures["*"] = AWAY
    await store.put(1)
    await store.attempted(4)
    assert pauses[:3] == [0.125, 0.25, 0.5]
    await store.deferred.close(0)


async def test_a_message_that_cannot_be_written_holds_up_no_other(
    store: Store, pauses: Sequence[float]
) -> None:
    store.failures["*"] = store.failures["large"] = AWAY
    large, small = await store.put("large"), await store.put("small", OTHER)
    assert large is not None
    assert small is not None
    del store.failures["*"]
    assert await asyncio.wait_for(small.wait(), SOON)
    assert store.deferred.is_pending(KEY)
    del store.failures["large"]
    assert await asyncio.wait_for(large.wait(), SOON)


@pytest.mark.parametrize(
    "failure", [GatewayError(ErrorKind.TOO_LARGE, "cannot: too long"), KeyError("a bug")]
)
async def test_another_failure_is_final_and_holds_up_nothing(
    failure: Exception, store: Store, pauses: Sequence[float], caplog: pytest.LogCaptureFixture
) -> None:
    store.failures["*"] = AWAY
    first, second = await store.put(1), await store.put(2)
    assert first is not None
    assert second is not None
    store.failures = {1: failure}
    assert not await first.wait()
    assert await second.wait()
    assert store.written == [2]
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    if isinstance(failure, GatewayError):
        assert (errors[0].__dict__["chat_id"], errors[0].__dict__["message_id"]) == KEY


async def test_another_failure_of_the_first_attempt_is_raised(store: Store) -> None:
    store.failures["*"] = GatewayError(ErrorKind.INTERNAL, "cannot: it is damaged")
    with pytest.raises(GatewayError, match="damaged"):
        await store.put(1)
    assert not store.deferred.count


@pytest.mark.parametrize(("name", "size"), [("MAX_DEFERRED_WRITES", 2), ("MAX_DEFERRED_CHARACTERS", 100)])
async def test_what_is_kept_is_bounded(
    name: str, size: int, store: Store, pauses: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_writes, name, 450 if size > 2 else 4)
    store.failures["*"] = AWAY
    for number in range(2):
        await store.put(number, size=size)
    for key in (KEY, OTHER):
        with pytest.raises(GatewayError) as caught:
            await store.put("event", key, size=size)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
    # Answers have the other half to themselves.
    for number in range(2, 4):
        await store.put(number, size=size, is_answer=True)
    with pytest.raises(GatewayError):
        await store.put("end", OTHER, size=size, is_answer=True)
    del store.failures["*"]
    await store.deferred.close(SOON)
    assert store.written == [0, 1, 2, 3]
    assert await store.put(4, size=size) is None


@pytest.mark.parametrize(("name", "size"), [("MAX_DEFERRED_WRITES", 2), ("MAX_DEFERRED_CHARACTERS", 100)])
async def test_an_account_gets_a_share_of_what_is_kept(
    name: str, size: int, store: Store, pauses: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A write counts with the quotes around it.
    monkeypatch.setattr(deferred_writes, name, 8 * (size if size > 2 else 1))
    store.failures["*"] = AWAY
    for number in range(2):
        await store.put(number, size=size, owner="ann", is_answer=True)
    with pytest.raises(GatewayError):
        await store.put(2, OTHER, size=size, owner="ann", is_answer=True)
    assert await store.put(3, OTHER, size=size, owner="bob", is_answer=True) is not None
    del store.failures["*"]
    await store.deferred.close(SOON)
    assert store.written == [0, 1, 3]


async def test_what_is_too_old_is_given_up(
    store: Store, pauses: Sequence[float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store.failures["*"] = AWAY
    old = await store.put(1)
    assert old is not None
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_SECONDS", -1)
    assert not await old.wait()
    assert "within -1 s" in caplog.text
    assert not store.deferred.count


async def test_a_stop_waits_and_names_what_is_lost(
    store: Store, pauses: Sequence[float], caplog: pytest.LogCaptureFixture
) -> None:
    store.failures["*"] = AWAY
    kept = [await store.put(1), await store.put(2, OTHER)]
    closing = asyncio.ensure_future(store.deferred.close(SOON))
    await store.attempted(4)
    del store.failures["*"]
    await closing
    assert sorted(store.written) == [1, 2]
    store = Store()
    store.failures["*"] = AWAY
    kept = [await store.put(1), await store.put(2, OTHER)]
    caplog.clear()
    await store.deferred.close(0)
    lost = [record.__dict__["message_id"] for record in caplog.records if record.levelno == logging.ERROR]
    assert sorted(lost) == ["m", "n"]
    assert [await write.wait() for write in kept if write is not None] == [False, False]
    with pytest.raises(GatewayError):
        await store.put(3)
    await asyncio.sleep(0)
    assert store.tasks.list() == {}


async def test_a_changed_content_is_told_and_a_removed_message_forgotten(
    store: Store, pauses: Sequence[float]
) -> None:
    store.failures["*"] = AWAY
    changed, gone = await store.put(1), await store.put(2, OTHER)
    assert changed is not None
    assert gone is not None
    store.deferred.supersede(KEY)
    store.deferred.drop(OTHER)
    store.deferred.supersede(("c", "unknown"))
    store.deferred.drop(("c", "unknown"))
    assert not await gone.wait()
    del store.failures["*"]
    assert await changed.wait()
    assert (store.written, store.superseded) == ([1], [1])


async def test_the_last_write_may_be_forgotten_during_a_pause(
    store: Store, pauses: Sequence[float], caplog: pytest.LogCaptureFixture
) -> None:
    store.failures["*"] = AWAY
    gone = await store.put(1)
    assert gone is not None
    while not pauses:
        await asyncio.sleep(0)
    store.deferred.drop(KEY)
    with caplog.at_level(logging.INFO):
        while store.tasks.list():
            await asyncio.sleep(0)
    assert "all deferred writes are stored or given up" in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_write_that_waits_behind_a_change_is_interrupted(
    is_first: bool, store: Store, pauses: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, attempts, written = asyncio.Lock(), [], []

    async def work(is_superseded: bool) -> None:
        attempts.append(is_superseded)
        if not is_first and len(attempts) % 2:
            raise AWAY
        async with lock:
            written.append(is_superseded)

    async def kept(key: tuple[str, str]) -> DeferredWrite:
        before = len(attempts)
        write = await store.deferred.write(key, work, "x", owner="u1")
        assert write is not None
        while len(attempts) < before + (1 if is_first else 2):
            await asyncio.sleep(0)
        return write

    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", 0.0)
    await lock.acquire()
    changed = await kept(KEY)
    store.deferred.supersede(KEY)
    lock.release()
    assert await asyncio.wait_for(changed.wait(), SOON)
    assert written == [True]
    await lock.acquire()
    gone = await kept(OTHER)
    store.deferred.drop(OTHER)
    lock.release()
    assert not await gone.wait()
    await store.deferred.close(SOON)
    assert (written, store.tasks.list()) == ([True], {})


async def test_a_caller_who_can_come_again_is_told_so(store: Store, pauses: Sequence[float]) -> None:
    async with store.deferred.turn(KEY):
        store.written.append("own")
    store.failures["*"] = AWAY
    await store.put(1)
    async with store.deferred.turn(OTHER):
        store.written.append("other")
    with pytest.raises(GatewayError) as caught:
        async with store.deferred.turn(KEY):
            store.written.append("overtaking")
    assert (caught.value.kind, caught.value.retry_after) == (
        ErrorKind.UNAVAILABLE,
        deferred_writes.RETRY_SECONDS,
    )
    assert store.written == ["own", "other"]
    await store.deferred.close(0)


class Statement:
    """A write that lasts until it is released, and that a cancellation does not end before."""

    def __init__(self, written: list[Any], *, is_under_way: bool = False) -> None:
        self.released = asyncio.Event()
        self.begun = asyncio.Event()
        self._written = written
        self._is_under_way = is_under_way

    async def work(self, _: bool) -> None:
        self.begun.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            if self._is_under_way:
                await self.released.wait()
                self._written.append("slow")
            raise
        self._written.append("slow")


async def test_a_write_waits_for_the_first_attempt_of_an_earlier_one(store: Store) -> None:
    slow = Statement(store.written)
    first = asyncio.ensure_future(store.deferred.write(KEY, slow.work, "x", owner="u1"))
    await slow.begun.wait()
    assert store.deferred.is_pending(KEY)
    later = [asyncio.ensure_future(store.put(number)) for number in range(2)]
    assert await store.put("other", OTHER) is None
    slow.released.set()
    assert await asyncio.gather(first, *later) == [None] * 3
    assert store.written == ["other", "slow", 0, 1]
    # The end of a write is known when its caller goes on.
    assert await store.put(2) is None
    assert not store.deferred.is_pending(KEY)


async def test_who_writes_by_itself_is_not_overtaken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)
    async with store.deferred.turn(KEY):
        kept = await store.put(1)
        with pytest.raises(GatewayError, match="earlier writes"):
            async with store.deferred.turn(KEY):
                store.written.append("overtaking")
        await asyncio.sleep(0.01)
        store.written.append("own")
    assert kept is not None
    assert await asyncio.wait_for(kept.wait(), SOON)
    assert store.written == ["own", 1]


async def test_a_write_without_room_is_stopped_before_its_caller_hears_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_writes, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_WRITES", 0)
    slow = Statement(store.written)
    with pytest.raises(GatewayError, match="did not answer in time"):
        await store.deferred.write(KEY, slow.work, "x", owner="u1")
    assert not store.deferred.is_pending(KEY)
    slow.released.set()
    assert await store.put(1) is None
    assert store.written == [1]


async def test_a_statement_that_cannot_be_stopped_is_not_overtaken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PATIENCE_SECONDS", "STOP_SECONDS"):
        monkeypatch.setattr(deferred_writes, name, 0.01)
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)
    room = deferred_writes.MAX_DEFERRED_WRITES
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_WRITES", 0)
    slow = Statement(store.written, is_under_way=True)
    with pytest.raises(GatewayError, match="did not answer in time"):
        await store.deferred.write(KEY, slow.work, "x", owner="u1")
    assert store.deferred.is_pending(KEY)
    monkeypatch.setattr(deferred_writes, "STOP_SECONDS", 2 * SOON)
    with pytest.raises(GatewayError, match="earlier writes"):
        # What has not begun need not be stopped.
        await asyncio.wait_for(store.put("refused"), SOON)
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_WRITES", room)
    later = await store.put(1)
    assert later is not None
    await asyncio.sleep(0.01)
    slow.released.set()
    assert await asyncio.wait_for(later.wait(), SOON)
    assert store.written == ["slow", 1]


@pytest.mark.parametrize("is_gone", [True, False])
async def test_what_is_changed_during_the_first_attempt_is_known_when_it_is_kept(
    is_gone: bool, store: Store, pauses: Sequence[float]
) -> None:
    released, told = asyncio.Event(), []

    async def work(is_superseded: bool) -> None:
        told.append(is_superseded)
        await released.wait()
        if len(told) == 1:
            raise AWAY

    caller = asyncio.ensure_future(store.deferred.write(KEY, work, "x", owner="u1"))
    while not told:
        await asyncio.sleep(0)
    (store.deferred.drop if is_gone else store.deferred.supersede)(KEY)
    released.set()
    write = await caller
    assert write is not None
    assert await asyncio.wait_for(write.wait(), SOON) is not is_gone
    assert told == ([False] if is_gone else [False, True])


@pytest.mark.parametrize(
    ("key", "said", "fields"),
    [
        (KEY, "a write to a message is lost", {"chat_id": "c", "message_id": "m", "request_id": "r1"}),
        (("c", ""), "a write to a chat is lost", {"chat_id": "c", "request_id": "r1"}),
    ],
)
async def test_what_is_lost_is_named(
    key: tuple[str, str],
    said: str,
    fields: dict[str, str],
    store: Store,
    pauses: Sequence[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(_: bool) -> None:
        raise AWAY

    ended: list[str] = []
    write = await store.deferred.write(key, work, "x", owner="u1", request_id="r1")
    assert write is not None
    write.at_end = lambda: ended.append("over")
    await store.deferred.close(0)
    [line] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert said in line.getMessage()
    names = ("chat_id", "message_id", "request_id")
    assert {name: line.__dict__[name] for name in names if name in line.__dict__} == fields
    assert ended == ["over"]
