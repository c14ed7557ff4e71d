"""Collections that load each other out of memory are told."""

import pytest

from gatewayd.vectors.index import eviction_watch
from gatewayd.vectors.index.checkpoints import CheckpointKey
from gatewayd.vectors.index.eviction_watch import REPEAT_SECONDS, SOON_SECONDS, ReloadWatch
from tests.fakes.documents.index_conformance import SPACE, collection

MIB = 1 << 20
A, B = CheckpointKey(SPACE, collection("a")), CheckpointKey(SPACE, collection("b"))
SENTENCE = (
    "the vectors of collection a (300 MiB) and of collection b (251 MiB) do not fit in vector_cache_size "
    "(512 MiB) together: searches load them again and again; raise it to more than 551 MiB"
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> ReloadWatch:
    return ReloadWatch(512 * MIB, clock)


def evict(watch: ReloadWatch) -> None:
    watch.note_eviction(A, 300 * MIB, B, 250 * MIB + 1)


def test_what_is_loaded_again_soon_is_told_once_in_a_while(
    watch: ReloadWatch, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        evict(watch)
        watch.note_load(A)
    assert caplog.messages == [SENTENCE]
    assert watch.problem == SENTENCE
    assert watch.count == 3
    clock.now = REPEAT_SECONDS
    assert watch.problem is None
    evict(watch)
    watch.note_load(A)
    assert caplog.messages == [SENTENCE] * 2


def test_what_is_loaded_again_later_or_for_the_first_time_is_nothing_to_tell(
    watch: ReloadWatch, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch.note_load(A)
    evict(watch)
    watch.note_load(B)
    clock.now = SOON_SECONDS + 1
    watch.note_load(A)
    assert (watch.count, watch.problem, caplog.messages) == (0, None, [])


def test_only_the_latest_are_remembered(watch: ReloadWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction_watch, "MAX_REMEMBERED_EVICTIONS", 1)
    watch.note_eviction(A, 1, B, 1)
    watch.note_eviction(B, 1, A, 1)
    watch.note_load(A)
    assert watch.count == 0
    watch.note_load(B)
    assert watch.count == 1
