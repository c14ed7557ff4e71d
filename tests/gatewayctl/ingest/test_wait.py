"""Waiting for the daemon."""

import pytest

from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.ingest.wait import AT_ONCE, settled
from gatewayctl.wire.files import File
from tests.fakes.http.ingest_client import Shelf


def test_each_file_is_told_when_it_is_done() -> None:
    shelf = Shelf()
    ids = [shelf.hold(name, "s", "pending") for name in ("a", "b", "c")]
    rounds = {"a": 3, "b": 1, "c": 2}

    def process(file: File) -> str:
        rounds[file.name] -= 1
        return "pending" if rounds[file.name] else "completed"

    shelf.process = process
    told = list(settled(shelf, ids, Stop()))
    assert [file.name for _, file in told if file] == ["b", "c", "a"]
    assert len(shelf.calls) == 3


def test_failed_and_stored_files_are_done_and_absent_ones_gone() -> None:
    shelf = Shelf()
    failed, stored = shelf.hold("a", "s", "failed"), shelf.hold("b", "s", "stored")
    told = dict(settled(shelf, [failed, "gone", stored, failed], Stop()))
    assert {key: file and file.status for key, file in told.items()} == {
        failed: "failed",
        "gone": None,
        stored: "stored",
    }


def test_many_are_asked_about_in_turn() -> None:
    shelf = Shelf()
    ids = [shelf.hold(str(number), "s", "pending") for number in range(AT_ONCE + 1)]
    assert [key for key, _ in settled(shelf, ids, Stop())] == ids
    assert len(shelf.calls) == 2
    assert list(settled(shelf, [], Stop())) == []


def test_a_stop_is_noticed() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(StoppedError):
        list(settled(Shelf(), ["a"], stop))
