from gatewayd.upstream.ndjson import LineFramer
from gatewayd.upstream.reader import DecodingReader
from gatewayd.upstream.sse import FramingError


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
