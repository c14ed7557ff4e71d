from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.upstream.sse import ChunkReader, DataFramer, FramingError, decode, error_of
from tests.fakes.upstream import openai_chunk, sse


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


def read_all(reads: list[bytes]) -> tuple[list[dict], ChunkReader]:
    reader = ChunkReader()
    chunks = [reader.feed(read) for read in reads]
    chunks.append(reader.finish())
    events = []
    for chunk in chunks:
        if chunk is not None:
            assert b"event" not in chunk.raw
            events += [orjson.loads(frame[5:]) for frame in chunk.raw.split(b"\n\n") if frame]
    return events, reader


EVENTS = st.sampled_from(
    [
        sse(openai_chunk(content="hé\n")),
        sse(openai_chunk(content="[DONE]")),
        sse(openai_chunk(finish_reason="stop"), end=b"\r\n\r\n"),
        sse({**openai_chunk(content="x"), "event": {"type": "execute"}}),
        b'data: {"\\u0065vent": {"type": "execute"}, "choices": []}\n\n',
        b"event: execute\n" + sse(openai_chunk(content="y")),
        b": ping\n\n",
        b"data:\n\n",
    ]
)


@given(st.lists(EVENTS, max_size=6).map(b"".join), st.lists(st.integers(0, 2000), max_size=8))
def test_any_split_gives_the_same_chunks(text, cuts):
    events, reader = read_all(split_at(text, cuts))
    whole_events, whole_reader = read_all([text])
    assert events == whole_events
    assert reader.is_complete == whole_reader.is_complete


def test_clean_reads_pass_as_they_are():
    reader = ChunkReader()
    read = b'data:   {"choices": [ ]}\n\n' + sse(openai_chunk(content="a"))
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
    assert error_of({"error": None}) is None
    assert error_of({"object": "error", "message": "no"}) == {"object": "error", "message": "no"}


@pytest.mark.parametrize("payload", [b"garbage", b'{"a": "\xff"}', b"[1]", b"3", b'{"a": NaN}'])
def test_what_is_not_an_object_is_refused(payload):
    with pytest.raises(FramingError, match="not"):
        decode(payload)
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
    with pytest.raises(FramingError, match="over 80 bytes"):
        list(map(reader.feed, reads))


@pytest.mark.parametrize("levels", [300, 900])
def test_json_that_could_not_be_written_again_is_refused(levels: int) -> None:
    payload = b'{"event": 1, "choices": ' + b"[" * levels + b"]" * levels + b"}"
    with pytest.raises(FramingError, match="too deep"):
        decode(payload)
    assert decode(payload.replace(b"[" * levels, b"[" * 200).replace(b"]" * levels, b"]" * 200))


ODD = b'data: {"id":"1",  "x":\t1.50, "choices":[{"delta":{"content":"\\u00e9"}}]}\n\n'


@pytest.mark.parametrize("size", [1, 7, 40, len(ODD), 100, 10_000])
def test_bytes_stay_as_they_came_however_they_are_cut(size: int) -> None:
    stream = ODD * 3 + sse(b"[DONE]") + b"data: more\n\n"
    reader = ChunkReader()
    chunks = [reader.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert b"".join(chunk.raw for chunk in chunks if chunk is not None) == ODD * 3
    assert reader.is_done


def test_only_what_was_changed_is_written_anew() -> None:
    read = ODD + sse({"event": {"type": "x"}, "choices": []}, {"event": 1}) + b"data: {\ndata: }\n\n" + ODD
    chunk = ChunkReader().feed(read)
    assert chunk is not None
    assert chunk.raw == ODD + sse({"choices": []}) + ODD
    joined = ChunkReader().feed(b'data: {"a":\ndata:  1.50}\n\n')
    assert joined is not None
    assert joined.raw == sse({"a": 1.5})
