import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.upstream.streams.ndjson import LineFramer
from gatewayd.upstream.streams.sse import FramingError


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_split_gives_the_same_lines(text, cut):
    framer, whole = LineFramer(), LineFramer()
    split = framer.feed(text[:cut]) + framer.feed(text[cut:]) + framer.finish()
    assert split == whole.feed(text) + whole.finish()
    assert b"\n".join(split) == text.removesuffix(b"\n")


@pytest.mark.parametrize(
    "reads", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"x" * 11 + b"\n"], [b"a\n" + b"x" * 11, b""]]
)
def test_huge_lines_are_refused(reads):
    framer = LineFramer(max_line=10)
    with pytest.raises(FramingError, match="over 10 bytes"):
        list(map(framer.feed, reads))


def test_many_short_lines_are_no_huge_line():
    assert LineFramer(max_line=10).feed(b"12345\n" * 9) == [b"12345"] * 9


@pytest.mark.parametrize("text", [b"a\nb\n" + b"x" * 11, b"a\nb\n" + b"x" * 11 + b"\nc\n"])
def test_lines_before_a_huge_one_are_not_lost(text):
    framer = LineFramer(max_line=10)
    assert framer.feed(text) == [b"a", b"b"]
    assert framer.broken is not None
    for more in (framer.finish, lambda: framer.feed(b"d\n")):
        with pytest.raises(FramingError, match="over 10 bytes"):
            more()
