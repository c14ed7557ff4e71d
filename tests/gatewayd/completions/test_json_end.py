"""Tests for gatewayd.completions.json_end."""

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions import json_end
from gatewayd.completions.json_end import JsonEndFinder

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a\\"{}[]', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"{', max_size=2), inner, max_size=3),
)


@given(st.dictionaries(st.text('\\"}', max_size=3), VALUES, max_size=3), st.data())
def test_the_end_of_an_object_is_where_it_closes(value, data):
    limit = data.draw(st.sampled_from([0, 3, 512]))
    said = orjson.dumps(value).decode()
    cuts = data.draw(st.lists(st.integers(0, len(said)), max_size=6).map(sorted))
    pieces = [said[a:b] for a, b in itertools.pairwise([0, *cuts, len(said)])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_end, "MAX_SCANNED_CHARACTERS", limit)
        end = JsonEndFinder()
        for number, piece in enumerate(pieces):
            end.feed(piece)
            assert end.is_whole == (sum(map(len, pieces[: number + 1])) == len(said))


@given(st.lists(st.text('a\\"{}[]', max_size=6), max_size=8))
def test_long_pieces_are_read_as_short_ones(pieces):
    found = []
    for limit in (0, 512):
        end = JsonEndFinder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_end, "MAX_SCANNED_CHARACTERS", limit)
            found.append([(end.feed(piece), end.is_whole)[1] for piece in pieces])
    assert found[0] == found[1]
