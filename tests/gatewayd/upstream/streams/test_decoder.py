from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.ndjson import LineFramer
from gatewayd.upstream.streams.sse import DataFramer, FramingError


class Echo:
    """Gives every object back; stops at `done`, fails at `error`."""

    def __init__(self):
        self.error = None
        self.is_done = False
        self.is_complete = False

    def decode(self, event, /):
        self.is_done = self.is_complete = "done" in event
        self.error = event.get("error")
        return [] if self.error else [event]


def test_whole_objects_only():
    reader = DecodingReader(LineFramer(), Echo())
    assert reader.feed(b'{"a":') is None
    chunk = reader.feed(b'1}\n\n{"b":2}\n{"c"')
    assert chunk is not None
    assert chunk.events == [{"a": 1}, {"b": 2}]
    assert not reader.is_complete
    last = reader.feed(b":3}") or reader.finish()
    assert last is not None
    assert last.events == [{"c": 3}]
    assert reader.finish() is None


def test_nothing_after_the_end():
    reader = DecodingReader(LineFramer(), Echo())
    chunk = reader.feed(b'{"done":1}\n{"late":1}\n')
    assert chunk is not None
    assert chunk.events == [{"done": 1}]
    assert reader.is_done
    assert reader.is_complete


def test_what_came_before_garbage_is_kept():
    reader = DecodingReader(LineFramer(), Echo())
    chunk = reader.feed(b'{"a":1}\ngarbage\n{"late":1}\n')
    assert chunk is not None
    assert chunk.events == [{"a": 1}]
    assert isinstance(reader.error, FramingError)
    assert reader.finish() is None


def test_nothing_after_an_error():
    reader = DecodingReader(LineFramer(), Echo())
    assert reader.feed(b'{"error":"no"}\n{"late":1}\n') is None
    assert reader.error == "no"


LINES = st.sampled_from(
    [b'{"a":1}', b'{"b":"h\xc3\xa9"}', b"", b" ", b"[DONE]", b'{"done":1}', b'{"error":"no"}', b"garbage"]
)
LONG = b'{"c":"' + b"x" * 60 + b'"}'
ODD = st.sampled_from([LONG, b'{"a":"\xff"}', b"[1]", b"\x00"])


def outcome(reader, reads):
    events = []
    for take in [*[lambda read=read: reader.feed(read) for read in reads], reader.finish]:
        try:
            chunk = take()
        except FramingError as error:
            return events, repr(error), reader.is_complete
        events += chunk.events if chunk else []
        if reader.error is not None:
            return events, repr(reader.error), reader.is_complete
    return events, "", reader.is_complete


@given(
    st.lists(LINES | ODD, max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_any_split_of_lines_gives_the_same(lines, end, cuts):
    text = b"".join(line + end for line in lines)
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    reads = [text[a:b] for a, b in pairwise(places)]
    split = outcome(DecodingReader(LineFramer(40), Echo()), reads)
    assert split == outcome(DecodingReader(LineFramer(40), Echo()), [text])


@given(st.lists(LINES | ODD, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(1, 30))
def test_any_split_of_events_gives_the_same(lines, end, size):
    text = b"".join(b"event: x" + end + b"data: " + line + end + end for line in lines)
    reads = [text[at : at + size] for at in range(0, len(text), size)]
    split = outcome(DecodingReader(DataFramer(40), Echo()), reads)
    assert split == outcome(DecodingReader(DataFramer(40), Echo()), [text])


@pytest.mark.parametrize("framer", [LineFramer(40), DataFramer(40)])
def test_what_came_before_a_huge_line_is_kept(framer):
    reader = DecodingReader(framer, Echo())
    start = b"data: " if isinstance(framer, DataFramer) else b""
    chunk = reader.feed(start + b'{"a":1}\n\n' + start + LONG + b"\n")
    assert chunk is not None
    assert chunk.events == [{"a": 1}]
    assert isinstance(reader.error, FramingError)
    assert reader.feed(b'{"a":1}\n') is None


def test_a_done_word_of_another_protocol_is_no_garbage():
    reader = DecodingReader(DataFramer(), Echo())
    chunk = reader.feed(b"data: [DONE]\n\ndata: " + orjson.dumps({"a": 1}) + b"\n\n")
    assert chunk is not None
    assert chunk.events == [{"a": 1}]
    assert reader.error is None
