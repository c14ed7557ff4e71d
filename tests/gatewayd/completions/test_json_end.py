"""Tests for gatewayd.completions.json_end."""

import itertools

import orjson
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.json_end import JsonEnd

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a\\"{}[]', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"{', max_size=2), inner, max_size=3),
)


@given(st.dictionaries(st.text('\\"}', max_size=3), VALUES, max_size=3), st.data())
def test_the_end_of_an_object_is_where_it_closes(value, data):
    said = orjson.dumps(value).decode()
    cuts = data.draw(st.lists(st.integers(0, len(said)), max_size=6).map(sorted))
    pieces = [said[a:b] for a, b in itertools.pairwise([0, *cuts, len(said)])]
    end = JsonEnd()
    for number, piece in enumerate(pieces):
        end.feed(piece)
        assert end.is_whole == (sum(map(len, pieces[: number + 1])) == len(said))
