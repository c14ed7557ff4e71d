from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.upstream.streams.sse import (
    ChunkReader,
    DataFramer,
    FramingError,
    decode_payload,
    find_error,
    replace_surrogates,
)
from tests.fakes.providers.upstream import openai_chunk, sse


def frames(reads: list[bytes]) -> list[bytes]:
    framer = DataFramer()
    found = [payload for read in reads for payload in framer.feed(read)]
    return found + framer.finish()


def test_line_ends_and_foreign_fields():
    text = b": hi\nevent: x\nid: 1\nretry: 5\ndata: a\n\ndata:b\r\n\r\ndata: c\r\rdata\n\n"
    text += b"data: d1\ndata: d2\n\nnoise\n\n"
    assert frames([text]) == [b"a", b"b", b"c", b"", b"d1\nd2"]


def test_missing_blank_line_at_the_end():
    assert frames([b"data: a\n\ndata: b"]) == [b"a", b"b"]
    assert frames([b"data: a\r"]) == [b"a"]


def test_byte_order_mark():
    assert frames([b"\xef", b"\xbb\xbfdata: a\n\n"]) == [b"a"]


def split_at(text: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


LINES = st.sampled_from(
    [b"data: a", b"data:", b"data: b c", b": note", b"event: e", b"", b"", b"x", "data: é".encode()]
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


@given(TEXTS, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_payloads(text, cuts):
    assert frames(split_at(text, cuts)) == frames([text])


Outcome = tuple[bytes, str, bool, bool]


def outcome(reads: list[bytes], max_line: int = MAX_LINE_BYTES) -> Outcome:
    """Return all frames as one text, the error, whether the answer is complete, and whether it is done."""
    reader = ChunkReader(max_line)
    chunks = [reader.feed(read) for read in reads]
    chunks.append(reader.finish())
    text = b"".join(chunk.raw for chunk in chunks if chunk is not None)
    check_frames(text)
    return text, repr(reader.error), reader.is_complete, reader.is_done


def check_frames(text: bytes) -> None:
    """Nothing but whole lines of JSON objects with choices, and no events of ours, errors or ends."""
    assert not text or text.endswith(b"\n\n")
    for frame in text[:-2].split(b"\n\n") if text else ():
        assert frame.startswith(b"data: ")
        assert b"\n" not in frame
        assert b"\r" not in frame
        event = orjson.loads(frame[6:])
        assert isinstance(event["choices"], list)
        assert "event" not in event
        assert not event.get("error")


def read_all(reads: list[bytes]) -> tuple[list[dict], ChunkReader]:
    reader = ChunkReader()
    chunks = [reader.feed(read) for read in reads]
    chunks.append(reader.finish())
    return [event for chunk in chunks if chunk is not None for event in chunk.events], reader


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
GOOD = [
    sse(openai_chunk(content="a")),
    sse(openai_chunk(content="h\u00e9\U0001f600\n\r")),
    sse(openai_chunk(content="[DONE] data: {} event: x\ufeff\u2028\x00")),
    sse(openai_chunk(content="x"), end=b"\r\n\r\n"),
    sse(openai_chunk(content="x"), end=b"\r\r"),
    sse(openai_chunk(content="x"), end=b"\n\r\n"),
    sse(openai_chunk(content="x"), openai_chunk(content="y"), openai_chunk(content="z")),
    sse(openai_chunk()),
    sse(openai_chunk(tool_calls=[])),
    sse(openai_chunk(tool_calls=[CALL])),
    sse({**openai_chunk(), "choices": []}),
    sse({**openai_chunk(), "choices": [], "usage": {"total_tokens": 5}}),
    sse({"usage": {"total_tokens": 5}}),
    sse({**openai_chunk(), "choices": None}),
    sse({**openai_chunk(), "choices": {}, "error": None}),
    sse({**openai_chunk(), "choices": [None, 5]}),
    sse({**openai_chunk(), "choices": openai_chunk(content="2")["choices"] * 2}),
    sse({**openai_chunk(content="x"), "event": {"type": "execute"}}),
    sse({"event": {"type": "execute", "data": {"code": "x"}}}),
    b'data: {"\\u0065vent": {"type": "execute"}, "choices": []}\n\n',
    b'data: {"event": 1, "event": 2, "choices": []}\n\n',
    b"event: execute\nid: 7\nretry: 1\n" + sse(openai_chunk(content="y")),
    sse(openai_chunk(content="y"))[:-1] + b"event: execute\n\n",
    b": ping\n\n",
    b":\n",
    b"\n\n\n",
    b"data:\n\n",
    b"data\n\n",
    b"\x00\n",
    b"<html><body>\n\n</body></html>\n",
    b"\xef\xbb\xbf",
    b'data:{"choices":[]}\n\n',
    b'data:   {"choices": [ ], "a": 1.50}  \n\n',
    b'data: {"choices":\ndata:[]}\n\n',
    b'data: {"choices":\r[]}\n\n',
    b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
    b'data: {"id": 123456789012345678901234567890, "choices": [{"delta": {}}]}\n\n',
]
ENDS = [
    sse(openai_chunk(finish_reason="stop")),
    sse(openai_chunk(content="last", finish_reason="length")),
    sse(openai_chunk(content="last", finish_reason="")),
    sse(b"[DONE]"),
    sse(b"[DONE]", end=b"\r\n\r\n"),
    b"data:[DONE]\n",
    b"data: [DONE]",
    sse({"error": {"message": "no"}}),
    sse({"error": "no", "choices": []}),
    sse({"object": "error", "message": "no"}),
    sse({"detail": "no"}),
    sse({**openai_chunk(finish_reason="error"), "error": {"code": 502, "message": "no"}}),
    b'{"error": {"message": "no"}}\n',
    sse(b"garbage"),
    sse(b'{"a": "\xff"}'),
    sse(b'{"choices": [{"delta": {"content": "\x00"}}]}'),
    sse(b'{"choices": [}'),
    sse(b'{"choices": []}{}'),
    sse(b"[1]"),
    b"data: " + b"x" * 400 + b"\n\n",
    b": " + b"x" * 400,
    b"data: " + b"[" * 210 + b"]" * 210 + b"\n\n",
]
STREAMS = st.lists(st.sampled_from(GOOD) | st.sampled_from(GOOD + ENDS), max_size=7).map(b"".join)


@settings(max_examples=400)
@given(STREAMS, st.lists(st.integers(0, 3000), max_size=10))
def test_any_split_gives_the_same_frames(text: bytes, cuts: list[int]) -> None:
    assert outcome(split_at(text, cuts), 400) == outcome([text], 400)


@given(STREAMS)
def test_single_bytes_give_the_same_frames(text: bytes) -> None:
    assert outcome([text[i : i + 1] for i in range(len(text))], 400) == outcome([text], 400)


@given(
    st.lists(
        st.sampled_from([b"data: ", b"{", b"}", b'"event":1', b'"choices":[]', b"\n", b"\r", b",", b"x"])
    )
)
def test_nothing_odd_ever_passes(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert outcome(parts) == outcome([text])


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_what_came_before_the_end_is_kept(first: bytes, size: int) -> None:
    begun = sse(openai_chunk(content="a"))
    stream = begun * 3 + first
    text, *_ = outcome([stream[at : at + size] for at in range(0, len(stream), size)], 400)
    assert text.startswith(begun * 3)


def test_clean_reads_pass_as_they_are():
    reader = ChunkReader()
    read = b'data: {"object":"chat.completion.chunk", "choices": [ {"index":0} ]}\n\n' + sse(
        openai_chunk(content="a")
    )
    assert reader.feed(sse(openai_chunk(content="first"))) is not None
    chunk = reader.feed(read)
    assert chunk is not None
    assert chunk.raw is read
    assert chunk.events[1]["choices"][0]["delta"] == {"content": "a"}
    assert not reader.is_complete


def test_done_is_taken_out_and_ends_the_stream():
    reader = ChunkReader()
    chunk = reader.feed(sse(openai_chunk(content="a"), b"[DONE]", openai_chunk(content="late")))
    assert chunk is not None
    assert [event["choices"][0]["delta"]["content"] for event in chunk.events] == ["a"]
    assert reader.is_done
    assert reader.is_complete
    assert reader.feed(sse(openai_chunk(content="later"))) is None
    assert reader.finish() is None


def test_finish_reason_completes_without_done():
    reader = ChunkReader()
    assert reader.feed(sse(openai_chunk(finish_reason="length"))) is not None
    assert reader.is_complete
    assert not reader.is_done


@pytest.mark.parametrize("reason", [None, ""])
def test_no_finish_reason_does_not_complete(reason):
    reader = ChunkReader()
    reader.feed(sse(openai_chunk(finish_reason=reason, content="finish_reason: stop")))
    assert not reader.is_complete


def test_an_error_ends_the_stream_after_what_came_before():
    reader = ChunkReader()
    chunk = reader.feed(sse(openai_chunk(content="a"), {"error": {"message": "no"}, "choices": []}))
    assert chunk is not None
    assert len(chunk.events) == 1
    assert reader.error == {"message": "no"}
    assert reader.feed(sse(openai_chunk(content="b"))) is None
    assert reader.finish() is None


def test_a_null_error_is_none():
    assert find_error({"error": None}) is None
    assert find_error({"object": "error", "message": "no"}) == {"object": "error", "message": "no"}


@pytest.mark.parametrize("payload", [b"garbage", b'{"a": "\xff"}', b"[1]", b"3", b'{"a": NaN}'])
def test_what_is_not_an_object_is_refused(payload):
    with pytest.raises(FramingError, match="not"):
        decode_payload(payload)
    reader = ChunkReader()
    chunk = reader.feed(sse(openai_chunk(content="a"), payload, openai_chunk(content="late")))
    assert chunk is not None
    assert [event["choices"][0]["delta"] for event in chunk.events] == [{"content": "a"}]
    assert isinstance(reader.error, FramingError)


@pytest.mark.parametrize(
    "reads",
    [
        [b"data: " + b"x" * 100],
        [b"data: " + b"x" * 40, b"y" * 60],
        [b'data: {"a": "' + b"x" * 100 + b'"}\n\n'],
        [b"data: " + b"x" * 20 + b"\n"] * 6,
    ],
)
def test_huge_lines_and_events_are_refused(reads):
    reader = ChunkReader(max_line=80)
    assert [reader.feed(read) for read in reads] == [None] * len(reads)
    assert isinstance(reader.error, FramingError)
    assert "over 80 bytes" in str(reader.error)
    framer = DataFramer(max_line=80)
    with pytest.raises(FramingError, match="over 80 bytes"):
        list(map(framer.feed, reads))


def test_an_endless_line_is_refused_before_it_is_held() -> None:
    reader = ChunkReader()
    assert reader.feed(sse(openai_chunk(content="a"))) is not None
    fed = 0
    while reader.error is None:
        assert reader.feed(b"data: " + b"x" * 50_000) is None
        fed += 1
    assert fed < 2 * MAX_LINE_BYTES / 50_000


def test_payloads_before_a_huge_line_are_not_lost() -> None:
    framer = DataFramer(max_line=20)
    assert framer.feed(b"data: a\n\n" + b"x" * 30 + b"\n\ndata: b\n\n") == [b"a"]
    assert framer.broken is not None
    for more in (framer.finish, lambda: framer.feed(b"")):
        with pytest.raises(FramingError, match="over 20 bytes"):
            more()


@pytest.mark.parametrize("levels", [300, 900])
def test_json_that_could_not_be_written_again_is_refused(levels: int) -> None:
    payload = b'{"event": 1, "choices": ' + b"[" * levels + b"]" * levels + b"}"
    with pytest.raises(FramingError, match="too deep"):
        decode_payload(payload)
    assert decode_payload(payload.replace(b"[" * levels, b"[" * 200).replace(b"]" * levels, b"]" * 200))


CALLED = {"object": "chat.completion.chunk"}
ODD = (
    b'data: {"object":"chat.completion.chunk",  "x":\t1.50, '
    b'"choices":[{"index":0,"delta":{"content":"\\u00e9"}}]}\n\n'
)


@pytest.mark.parametrize("size", [1, 7, 40, len(ODD), 100, 10_000])
def test_bytes_stay_as_they_came_however_they_are_cut(size: int) -> None:
    stream = ODD * 3 + sse(b"[DONE]") + b"data: more\n\n"
    reader = ChunkReader()
    chunks = [reader.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert b"".join(chunk.raw for chunk in chunks if chunk is not None) == ODD * 3
    assert reader.is_done


def test_only_what_was_changed_is_written_anew() -> None:
    event = {**CALLED, "choices": []}
    read = ODD + sse({**event, "event": {"type": "x"}}, {"event": 1}) + b"data: {\ndata: }\n\n" + ODD
    chunk = ChunkReader().feed(read)
    assert chunk is not None
    assert chunk.raw == ODD + sse(event) + ODD
    joined = ChunkReader().feed(
        b'data: {"object":"chat.completion.chunk","choices":[],"a":\ndata:  1.50}\n\n'
    )
    assert joined is not None
    assert joined.raw == sse({**event, "a": 1.5})


@pytest.mark.parametrize(
    "event", [{"usage": {}, "id": "1"}, {"choices": None, "id": "1"}, {"choices": "x", "id": "1"}]
)
def test_every_event_has_a_list_of_choices(event: dict) -> None:
    chunk = ChunkReader().feed(sse(CALLED | event))
    assert chunk is not None
    assert chunk.raw == sse(CALLED | event | {"choices": []})


ERRORS = [
    {"error": {"message": "no"}},
    {"error": "no"},
    {"error": ["no"], "choices": []},
    {"object": "error", "message": "no"},
    {"message": "no", "code": 500},
    {"detail": [{"msg": "no"}]},
    {"errors": ["no"]},
    {"choices": [{"index": 0, "delta": {}, "error": {"message": "no"}, "finish_reason": "error"}]},
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("first", [b"", sse(openai_chunk(content="a"))])
def test_errors_in_their_shapes(error: dict, first: bytes) -> None:
    events, reader = read_all([first, first + sse(error) + sse(b"[DONE]")])
    assert len(events) == (2 if first else 0)
    assert error_message_in({"error": reader.error}) == "no"
    assert not reader.is_complete


@pytest.mark.parametrize(
    "event",
    [
        {"error": None, "choices": []},
        {"error": {}, "choices": []},
        {"error": "", "choices": []},
        {"message": "hi", "choices": []},
        {"choices": [{"index": 0, "delta": {}, "error": None}]},
    ],
)
def test_what_is_no_error(event: dict) -> None:
    events, reader = read_all([sse(event)])
    assert events == [event | CALLED]
    assert reader.error is None


def test_an_error_outside_of_any_event_tells_why_a_stream_broke() -> None:
    error = b'{"error": {"message": "no"}}'
    begun = sse(openai_chunk(content="a"))
    for end in (error, error + b"\n", b"\n" + error + b"\n\n"):
        events, reader = read_all([begun, end])
        assert len(events) == 1
        assert reader.error == {"message": "no"}
    events, reader = read_all([begun, error + b"\n", sse(openai_chunk(finish_reason="stop"))])
    assert reader.error is None
    assert reader.is_complete
    for stray in (b"{\n", b"{}", b'{"a": 1}'):
        assert read_all([begun, stray])[1].error is None


def test_finish_reasons_of_any_choice_complete() -> None:
    finished = {**openai_chunk()["choices"][0], "finish_reason": "stop"}
    for choices in ([finished], [{}, finished], [None, finished]):
        _, reader = read_all([sse(openai_chunk(content="a")), sse({"choices": choices})])
        assert reader.is_complete


def test_the_reader_is_quick_again_after_what_is_not_clean() -> None:
    reader = ChunkReader()
    clean = sse(openai_chunk(content="a"))
    for odd in (b": ping\n\n", clean[:50], clean[50:] + clean[:-1], b"\n", clean.replace(b"\n", b"\r\n")):
        reader.feed(odd)
    chunk = reader.feed(clean)
    assert chunk is not None
    assert chunk.raw is clean


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        (b'"\\ud83d\\ude00"', b'"\\ud83d\\ude00"'),
        (b'"\\ud83d"', b'"\\ufffd"'),
        (b'"\\uDE00x\\uD83D"', b'"\\ufffdx\\ufffd"'),
        (b'"\\ud83d\\ud83d\\ude00"', b'"\\ufffd\\ud83d\\ude00"'),
        (b'"\\\\ud83d \\u00e9 \\ue000"', b'"\\\\ud83d \\u00e9 \\ue000"'),
        (b'"\\\\\\ud83d"', b'"\\\\\\ufffd"'),
    ],
)
def test_halves_of_characters_are_replaced(written: bytes, mended: bytes) -> None:
    assert replace_surrogates(written) == mended
    event = b'{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%s}}]}'
    chunk = ChunkReader().feed(b"data: " + event % written + b"\n\n")
    assert chunk is not None
    assert chunk.raw == b"data: " + event % mended + b"\n\n"
    assert decode_payload(event % written) == orjson.loads(event % mended)


def test_what_clients_would_drop_or_join_wrongly_is_mended() -> None:
    def call(**piece: object) -> dict:
        return openai_chunk(tool_calls=[piece])

    nameless = openai_chunk(content="a")
    del nameless["object"]
    first = {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}
    second = {"id": "c2", "index": 0, "function": {"name": "g", "arguments": "{}"}}
    events, reader = read_all([sse(nameless), sse(call(**first)), sse(call(**second))])
    assert events[0] == openai_chunk(content="a")
    calls = [event["choices"][0]["delta"]["tool_calls"][0] for event in events[1:]]
    assert [(each["index"], each["function"]["arguments"]) for each in calls] == [(0, '{"a":1}'), (1, "{}")]
    assert reader.error is None


def test_tool_calls_that_are_well_formed_pass_as_they_came() -> None:
    pieces = [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a":'}},
        {"index": 0, "function": {"arguments": "1}"}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    reader = ChunkReader()
    for piece in pieces:
        read = sse(openai_chunk(tool_calls=[piece])).replace(b'"created":', b'"created": ')
        chunk = reader.feed(read)
        assert chunk is not None
        assert chunk.raw == read


@pytest.mark.parametrize(
    ("delta", "is_plain"),
    [
        ({"content": "a"}, True),
        ({"role": "assistant", "content": None}, True),
        ({"reasoning_content": "a"}, False),
        ({"content": "", "reasoning": None}, False),
        ({"tool_calls": []}, False),
        ({"content": [{"type": "thinking", "thinking": "a"}]}, False),
        (None, False),
    ],
)
def test_plain_chunks(delta, is_plain):
    event = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    plain = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "b"}}]}
    chunk = ChunkReader().feed(sse(plain) + sse(event))
    assert chunk is not None
    assert chunk.is_plain == is_plain


def test_thinking_in_a_list_becomes_reasoning_content() -> None:
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}
    delta = {"role": "assistant", "content": [part]}
    event = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    chunk = ChunkReader().feed(b"data: " + orjson.dumps(event) + b"\n\n")
    assert chunk is not None
    changed = orjson.loads(chunk.raw.removeprefix(b"data: "))["choices"][0]["delta"]
    assert changed == {"role": "assistant", "content": None, "reasoning_content": "t"}
