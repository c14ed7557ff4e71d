"""The checkers of the nemeses fail on histories of gateways that are broken in a known way."""

import pytest

from tests.fakes.cluster.checkers import (
    Connected,
    Frame,
    StoredFile,
    Writes,
    check_files,
    check_runs,
    check_stream,
    check_writes,
)


def test_writes_that_are_all_there_pass() -> None:
    assert check_writes(Writes({"a"}, {"b", "c"}), ["a", "b"]) == []


@pytest.mark.parametrize(
    ("writes", "found", "problem"),
    [
        # An answer before the commit.
        (Writes({"a", "b"}), ["a"], "lost: b"),
        # A request that somebody between sent again.
        (Writes({"a"}, {"b"}), ["a", "b", "b"], "2 times: b"),
        (Writes({"a"}), ["a", "z"], "never written: z"),
        (Writes(set(), {"a"}), [], "nothing was acknowledged"),
    ],
)
def test_writes_that_are_wrong_are_found(writes: Writes, found: list[str], problem: str) -> None:
    assert check_writes(writes, found) == [problem]


def test_files_that_are_whole_pass() -> None:
    assert check_files({"f": b"x"}, {"f": StoredFile("completed", b"x", [1, 0])}) == []


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (None, "lost: f"),
        # The loser of two uploads of one id renamed its bytes over those of the winner.
        (StoredFile("completed", b"y", [0]), "other bytes: f"),
        # A job of a dead node that nobody looks at.
        (StoredFile("pending", b"x", [0]), "pending: f"),
        # No fence compared: a node that was paused stages what another has staged.
        (StoredFile("completed", b"x", [0, 0, 1, 1]), "passages [0, 0, 1, 1]: f"),
        # A node that was paused unstages what another has published.
        (StoredFile("completed", b"x", [0, 2]), "passages [0, 2]: f"),
        (StoredFile("completed", b"x"), "passages []: f"),
    ],
)
def test_files_that_are_wrong_are_found(file: StoredFile | None, problem: str) -> None:
    assert check_files({"f": b"x"}, {"f": file} if file else {}) == [problem]


ON, GAP = Connected(has_gap=False), Connected(has_gap=True)


@pytest.mark.parametrize(
    ("told", "unsure", "seen"),
    [
        ([1, 2, 3], [], [ON, Frame(1), Frame(2), ON, Frame(3)]),
        ([1, 2, 4], [3], [ON, Frame(1), Frame(2), Frame(4)]),
        ([1, 2, 4], [3], [ON, Frame(1), Frame(2), Frame(3), Frame(4)]),
        ([1, 2, 3, 4], [], [ON, Frame(1), GAP, Frame(4)]),
        # Without Redis a node tells its own events, and afterwards all of a gap.
        ([1, 2, 3, 4], [], [ON, Frame(1), Frame(3), GAP, Frame(4)]),
        # After a gap, what is still kept is told again.
        ([1, 2, 3], [], [ON, Frame(1), Frame(2), GAP, Frame(1), Frame(2), Frame(3)]),
        # What is told before the listener comes is not its own.
        ([1, 2, 3], [], [ON, Frame(3)]),
    ],
)
def test_a_stream_that_is_whole_passes(
    told: list[int], unsure: list[int], seen: list[Connected | Frame]
) -> None:
    assert check_stream(told, unsure, seen) == []


@pytest.mark.parametrize(
    ("told", "seen", "problem"),
    [
        # A resumption by `>=` in the place of `>`.
        ([1, 2], [ON, Frame(1), ON, Frame(1), Frame(2)], "twice: 1"),
        # A resumption after the newest event in the place of the last one.
        ([1, 2, 3], [ON, Frame(1), ON, Frame(3)], "lost: 2"),
        ([1, 2], [GAP, Frame(1), ON, Frame(1), Frame(2)], "twice: 1"),
        # A gap that is not told.
        ([1, 2, 3, 4], [ON, Frame(1), GAP, Frame(2), ON, Frame(4)], "lost: 3"),
        ([1, 2, 3], [ON, Frame(1), Frame(3), Frame(2)], "lost: 2"),
        ([1, 2], [ON, Frame(1)], "the last event did not come: 2"),
        ([], [ON], "nothing was heard"),
    ],
)
def test_a_stream_that_is_wrong_is_found(
    told: list[int], seen: list[Connected | Frame], problem: str
) -> None:
    assert problem in check_stream(told, [], seen)


def test_runs_that_end_pass() -> None:
    died = {"done": True, "content": "Hel", "error": {"content": "died"}}
    assert check_runs({"a": {"done": True, "content": "Hello"}, "b": died}, {"Hello"}) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"done": False, "content": "Hello"}, "not done: a"),
        # Two nodes wrote one answer.
        ({"done": True, "content": "HelHello"}, "'HelHello': a"),
        ({"done": True, "content": "Hel"}, "'Hel' without an error: a"),
        (None, "nothing was answered"),
    ],
)
def test_runs_that_are_wrong_are_found(message: dict[str, object] | None, problem: str) -> None:
    assert check_runs({"a": message} if message else {}, {"Hello"}) == [problem]
