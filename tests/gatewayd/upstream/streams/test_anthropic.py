"""Tests for gatewayd.upstream.streams.anthropic."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.upstream.streams.anthropic import MessageReader, message_events
from gatewayd.upstream.streams.chunks import ReportedError
from gatewayd.upstream.streams.sse import FramingError
from tests.fakes.providers.upstream import anthropic_events, anthropic_message, anthropic_stream, sse

START = {"type": "message_start", "message": anthropic_message("", "up", content=[], stop_reason=None)}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
STOP = {"type": "message_stop"}


def text(word):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}


def read(*reads, end=True):
    """Return what passes, and the reader."""
    reader = MessageReader("ours")
    chunks = [reader.feed(part) for part in reads]
    if end:
        chunks.append(reader.finish())
    return b"".join(chunk.raw for chunk in chunks if chunk is not None), reader


def parse(raw):
    """Return the events of a stream, each under the name that its `event:` line gives."""
    frames = raw.split(b"\n\n")
    assert frames.pop() == b""
    events = []
    for frame in frames:
        name, data = frame.split(b"\n")
        event = orjson.loads(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        events.append(event)
    return events


def test_a_stream_passes_with_the_callers_model():
    events = parse(read(*anthropic_stream(["a", "b"], "up"))[0])
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"] == {**START["message"], "model": "ours"}


def test_json_stays_as_it_came():
    odd = b'{ "type":"content_block_delta", "index":0, "x": 1.10, "delta":{"text":"\\u00e9"} }'
    raw, _ = read(anthropic_events(START), sse(odd), anthropic_events(END, STOP))
    assert b"event: content_block_delta\ndata: " + odd + b"\n\n" in raw


@given(st.data())
def test_any_split_gives_the_same_events(data):
    ending = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    whole = b": hi\n\n" + b"".join(anthropic_stream(["é", "b\u2028"], "up"))
    whole = whole.replace(b"\n", ending)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    raw, reader = read(*parts)
    assert raw == read(*anthropic_stream(["é", "b\u2028"], "up"))[0]
    assert reader.is_done
    assert reader.error is None


@given(st.lists(st.binary(max_size=40), max_size=4))
def test_garbage_never_passes(parts):
    reader = MessageReader("ours")
    try:
        chunks = [reader.feed(part) for part in parts]
        chunks.append(reader.finish())
    except FramingError:
        return
    assert all(chunk is None for chunk in chunks)
    assert reader.error is not None


OBJECTS = st.dictionaries(st.sampled_from(["stop_reason", "type", "text"]), st.text(max_size=3))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
TYPES = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "ping"]
)
EVENTS = st.fixed_dictionaries(
    {"type": TYPES | JSON},
    optional={"message": OBJECTS, "delta": OBJECTS | JSON, "event": JSON, "error": JSON, "index": JSON},
)


@given(st.lists(EVENTS, max_size=6))
def test_whatever_the_events_hold_what_passes_is_a_stream(events):
    try:
        raw, reader = read(anthropic_events(START), *map(sse, events))
    except FramingError:
        return
    passed = parse(raw)
    assert passed[0]["message"]["model"] == "ours"
    assert not any("event" in event for event in passed)
    assert [event["type"] for event in passed].count("message_start") == 1
    assert reader.is_complete or passed[-1]["type"] != "message_stop"


def test_names_and_events_of_the_gateway_cannot_be_sent():
    forged = b"event: execute\nid: 7\nretry: 1\n" + sse({**text("a"), "event": {"type": "execute"}})
    raw, _ = read(anthropic_events(START), forged, anthropic_events(END, STOP))
    assert [event["type"] for event in parse(raw)][1:] == [
        "content_block_delta",
        "message_delta",
        "message_stop",
    ]
    assert b"execute" not in raw
    assert b"retry" not in raw


@pytest.mark.parametrize("kind", ["chat:completion", "a\nevent: x", "", "A", None, 3, "a" * 65])
def test_a_type_that_is_no_name_ends_the_stream(kind):
    raw, reader = read(anthropic_events(START), sse({"type": kind}), anthropic_events(END), end=False)
    assert [event["type"] for event in parse(raw)] == ["message_start"]
    assert isinstance(reader.error, FramingError)


def test_an_unknown_event_passes():
    raw, _ = read(anthropic_events(START), sse({"type": "new_thing"}), anthropic_events(END, STOP))
    assert parse(raw)[1] == {"type": "new_thing"}


def test_a_json_text_over_several_lines_becomes_one():
    split = b'data: {"type":\ndata: "ping"}\n\n'
    raw, _ = read(anthropic_events(START), split, anthropic_events(END, STOP))
    assert parse(raw)[1] == {"type": "ping"}


def test_a_second_start_and_what_follows_the_end_are_dropped():
    raw, _ = read(anthropic_events(START, START, END, STOP, text("late")), anthropic_events(START))
    assert [event["type"] for event in parse(raw)] == ["message_start", "message_delta", "message_stop"]


@pytest.mark.parametrize("last", [b"", sse(b"[DONE]"), b"\n\n", b": over\n\n"])
def test_a_missing_stop_is_added_after_a_reason(last):
    raw, reader = read(anthropic_events(START, text("a"), END) + last)
    assert [event["type"] for event in parse(raw)][-2:] == ["message_delta", "message_stop"]
    assert reader.is_complete


def test_a_stop_without_its_blank_line_counts():
    raw, _ = read(anthropic_events(START, END, STOP).removesuffix(b"\n\n"))
    assert [event["type"] for event in parse(raw)] == ["message_start", "message_delta", "message_stop"]


def test_a_stream_cut_short_is_not_complete():
    raw, reader = read(anthropic_events(START, text("a")))
    assert [event["type"] for event in parse(raw)] == ["message_start", "content_block_delta"]
    assert not reader.is_complete


def test_the_start_of_an_event_is_no_event():
    raw, reader = read(anthropic_events(START, text("a")) + anthropic_events(END)[:40])
    assert [event["type"] for event in parse(raw)] == ["message_start", "content_block_delta"]
    assert reader.error is None
    assert not reader.is_complete


@pytest.mark.parametrize("start", [b"", anthropic_events({"type": "ping"}), sse(b"[DONE]")])
def test_a_stream_without_a_message_is_none(start):
    with pytest.raises(FramingError, match="no message_start"):
        read(start)


@pytest.mark.parametrize("event", [text("a"), END, STOP, {"type": "message_start", "message": 3}])
def test_a_stream_must_begin_with_a_message(event):
    raw, reader = read(anthropic_events({"type": "ping"}, event), end=False)
    assert raw == b""
    assert "message_start" in str(reader.error)


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error"}}


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (OVERLOADED, ReportedError(OVERLOADED, orjson.dumps(OVERLOADED))),
        ({"type": "error"}, ReportedError({"type": "error"}, b'{"type":"error"}')),
        ({"error": {"message": "no"}}, {"message": "no"}),
    ],
)
def test_an_error_event_is_left_in_error(event, error):
    raw, reader = read(anthropic_events(START, text("a")) + sse(event) + anthropic_events(END))
    assert [event["type"] for event in parse(raw)] == ["message_start", "content_block_delta"]
    assert reader.error == error
    assert not reader.is_complete


def test_a_whole_message_as_events():
    calls = [{"type": "tool_use", "id": f"t{i}", "name": "f", "input": {"a": i}} for i in range(2)]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    said = {"type": "text", "text": "hi", "citations": [{"type": "page_location"}]}
    message = anthropic_message("", "up", content=[thought, hidden, said, *calls], stop_reason="tool_use")
    first, *middle, delta, stop = parse(message_events(message, "ours").raw)
    assert first["message"]["content"] == []
    assert (first["message"]["model"], first["message"]["stop_reason"]) == ("ours", None)
    starts = [event["content_block"] for event in middle if event["type"] == "content_block_start"]
    assert starts == [
        {"type": "thinking", "thinking": "", "signature": ""},
        hidden,
        {"type": "text", "text": ""},
        {**calls[0], "input": {}},
        {**calls[1], "input": {}},
    ]
    assert [event["delta"] for event in middle if event["type"] == "content_block_delta"] == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "s"},
        {"type": "text_delta", "text": "hi"},
        {"type": "citations_delta", "citation": {"type": "page_location"}},
        {"type": "input_json_delta", "partial_json": '{"a":0}'},
        {"type": "input_json_delta", "partial_json": '{"a":1}'},
    ]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert delta["usage"] == {"input_tokens": 3, "output_tokens": 2}
    assert stop == STOP


def test_a_whole_answer_that_is_no_message():
    with pytest.raises(FramingError, match="no 'content'"):
        message_events({"id": "x"}, "ours")
