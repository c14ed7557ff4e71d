"""Tests for gatewayd.upstream.streams.checks: reads in, what may pass and the error out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.upstream.streams.checks import CheckedEvents, CheckedLines, CheckedWhole, StreamChecker
from gatewayd.upstream.streams.sse import FramingError


def run(check: StreamChecker, *reads: bytes) -> tuple[bytes, str | None]:
    """Return all that passed, and the error as text."""
    passed = b""
    for read in reads:
        passed += check.feed(read)
        if check.error is not None:
            break
    else:
        passed += check.finish()
    return passed, None if check.error is None else str(check.error)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return the bytes cut at some places."""
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)
LINE = b'{"a" : 1.0}\n'


@given(CUTS)
def test_lines_pass_as_they_are(places: list[int]) -> None:
    assert run(CheckedLines(), *cut(LINE * 3, places)) == (LINE * 3, None)


@pytest.mark.parametrize(
    ("answer", "passed", "error"),
    [
        (b"", b"", "ended before it was complete"),
        (b"\n \n", b"\n \n", "ended before it was complete"),
        (b"x\n", b"", "not JSON"),
        (b"x", b"", "not JSON"),
        (LINE + b"[1]\n", LINE, "not a JSON object"),
        (LINE + b'{"a": "\xff"}\n', LINE, "not JSON"),
        (LINE + b'{"error": "it broke"}\n' + LINE, LINE + b'{"error": "it broke"}\n', None),
        (LINE + b"x" * 100, LINE, "over 50 bytes"),
        (LINE + b"x" * 100 + b"\n", LINE, "over 50 bytes"),
        (LINE + b'{"a"', LINE, None),
        (LINE + LINE[:-1], LINE * 2, None),
        (b'{"a":1}\r\n\r\n{"b":2}\n', b'{"a":1}\r\n\r\n{"b":2}\n', None),
        (b'{"a":1,"event":{"type":"execute"}}\n', b'{"a":1}\n', None),
    ],
)
@given(places=CUTS)
def test_lines_up_to_what_is_none(answer: bytes, passed: bytes, error: str | None, places: list[int]) -> None:
    got, said = run(CheckedLines(50), *cut(answer, places))
    assert got == passed
    assert (said is None) is (error is None)
    assert (error or "") in (said or "")


END = b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
DELTA = b'event: response.delta\ndata: {"type": "response.delta"}\n\n'
COMPLETED = b'event: response.completed\ndata: {"type": "response.completed"}\n\n'


@pytest.mark.parametrize(
    ("answer", "passed", "error"),
    [
        (END + DONE, END + DONE, None),
        (END, END, None),
        (DELTA + COMPLETED, DELTA + COMPLETED, None),
        (DELTA.replace(b"\n", b"\r\n") + COMPLETED.replace(b"\n", b"\r"), DELTA + COMPLETED, None),
        (COMPLETED + b'data: {"a', COMPLETED, None),
        (DONE + b"data: late\n\n", DONE, None),
        (b": hi\n\nevent: execute\nid: 3\nretry: 9\n" + END, END, None),
        (
            b'event: execute\ndata: {"type": "execute!"}\n\n' + DONE,
            b'data: {"type": "execute!"}\n\n' + DONE,
            None,
        ),
        (b'data: {"event":{"type":"execute"},"a":1}\n\n' + DONE, b'data: {"a":1}\n\n' + DONE, None),
        (b"", b"", "ended before it was complete"),
        (DELTA, DELTA, "ended before it was complete"),
        (DELTA + b'data: {"a', DELTA, "ended before it was complete"),
        (DELTA + b"data: x\n\n" + COMPLETED, DELTA, "not JSON"),
        (DELTA + b"data: [1]\n\n" + COMPLETED, DELTA, "not a JSON object"),
        (DELTA + b'data: {"a": "\xff"}\n\n' + COMPLETED, DELTA, "not JSON"),
        (DELTA + b'data: {"error": {"message": "it broke"}}\n\n' + DONE, DELTA, "it broke"),
        (DELTA + b'data: {"type": "error", "message": "it broke"}\n\n' + COMPLETED, DELTA, "it broke"),
        (DELTA + b"data: " + b"x" * 200, DELTA, "over 99 bytes"),
    ],
)
@given(places=CUTS)
def test_events_up_to_what_is_none(
    answer: bytes, passed: bytes, error: str | None, places: list[int]
) -> None:
    got, said = run(CheckedEvents(99), *cut(answer, places))
    assert got == passed
    assert (said is None) is (error is None)
    assert (error or "") in (said or "")


@pytest.mark.parametrize(
    ("answer", "passed", "error"),
    [
        (b' {"a" : 1.0}\n', b' {"a" : 1.0}\n', None),
        (b'{"a":1,"event":{}}', b'{"a":1}', None),
        (b'{"a":"' + b"x" * 200, b'{"a":"' + b"x" * 200, None),
        (b"", b"", "its answer is empty"),
        (b"x", b"", "not JSON"),
        (b"[1]", b"", "not a JSON object"),
        (b'{"a": "\xff"}', b"", "not JSON"),
        (b'{"error": "it broke"}', b"", "it broke"),
        (b"x" * 200, b"", "not a JSON object"),
        (b'{"a":' * 250 + b"1" + b"}" * 250, b"", "too deep"),
    ],
)
@given(places=CUTS)
def test_whole_answers(answer: bytes, passed: bytes, error: str | None, places: list[int]) -> None:
    held = 10_000 if error == "too deep" else 100
    got, said = run(CheckedWhole(max_held=held), *cut(answer, places))
    assert got == passed
    assert (error or "") in (said or "")
    assert (said is None) is (error is None)


def test_a_whole_answer_may_be_empty_where_that_is_usual() -> None:
    assert run(CheckedWhole(may_be_empty=True)) == (b"", None)
    assert run(CheckedWhole(may_be_empty=True), b"x")[1] == "its answer is not JSON"


@pytest.mark.parametrize("check", [CheckedLines(5), CheckedEvents(5)])
def test_nothing_follows_an_error(check: StreamChecker) -> None:
    check.feed(b"x" * 10)
    assert isinstance(check.error, FramingError)
    assert check.finish() == b""
