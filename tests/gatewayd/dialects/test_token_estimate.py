"""Tests for gatewayd.dialects.token_estimate."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.dialects.token_estimate import (
    DOCUMENT_TOKENS,
    IMAGE_TOKENS,
    count_tokens,
    length_tokens,
    text_tokens,
)

FABLE = (
    "A crow, half dead with thirst, came upon a pitcher which had once been full of water; but when the crow "
    "put its beak into the mouth of the pitcher it found that only very little water was left in it, and "
    "that it could not reach far enough down to get at it."
)
"""55 to 60 tokens in the usual tokenizers."""


def said(*content):
    return {"messages": [{"role": "user", "content": list(content)}]}


def image(data):
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("Hi", 1, 2),
        ("Hello, world!", 3, 5),
        (FABLE, 50, 75),
        ("吾輩は猫である。名前はまだ無い。", 12, 24),
        ("Вчера мы ходили в кино и смотрели новый фильм", 12, 30),
        ("🙂", 1, 4),
        ("\ud800", 1, 1),
    ],
)
def test_known_texts(text, low, high):
    assert low <= text_tokens(text) <= high


def test_length():
    assert [length_tokens(number) for number in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize("value", [{}, {"messages": None}, {"messages": 5, "tools": "x", "system": [None]}])
def test_there_is_always_one(value):
    assert count_tokens(value) >= 1


def test_system_messages_and_tools_add_up():
    one = count_tokens(said({"type": "text", "text": FABLE}))
    assert one == count_tokens({"messages": [{"role": "user", "content": FABLE}]})
    assert 60 <= one <= 80
    tool = {"name": "f", "description": FABLE, "input_schema": {"type": "object", "properties": {}}}
    assert count_tokens({**said(FABLE), "system": FABLE, "tools": [tool]}) > 3 * text_tokens(FABLE)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(200, 150), 40),
        (png(4000, 4000), IMAGE_TOKENS),
        (png(0, 0), 1),
        (b"GIF89a" + struct.pack("<HH", 200, 150), 40),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 150, 200), 40),
        (b"\xff\xd8\xff\xe0\0\x04ab", IMAGE_TOKENS),
        (b"RIFF____WEBPVP8X" + bytes(8) + b"\xc7\0\0\x95\0\0", 40),
        (b"RIFF____WEBPVP8L" + bytes(5) + (199 | 149 << 14).to_bytes(4, "little") + bytes(9), 40),
        (b"RIFF____WEBPVP8 " + bytes(10) + struct.pack("<HH", 200, 150), 40),
        (b"RIFF____WEBPVP8?" + bytes(14), IMAGE_TOKENS),
        (b"no image", IMAGE_TOKENS),
    ],
)
def test_images_count_by_their_size(data, expected):
    assert count_tokens(said(image(data))) - count_tokens(said()) == expected


def test_images_of_unknown_size_and_documents():
    empty = count_tokens(said())
    assert (
        count_tokens(said({"type": "image", "source": {"type": "url", "url": "x"}})) - empty == IMAGE_TOKENS
    )
    assert count_tokens(said({"type": "image", "source": {"data": "ü"}})) - empty == IMAGE_TOKENS
    pdf = {"type": "document", "source": {"type": "base64", "data": "A" * 80_000}}
    assert count_tokens(said(pdf)) - empty == 2 * DOCUMENT_TOKENS
    plain = {"type": "document", "title": "T", "source": {"type": "text", "data": FABLE}}
    assert count_tokens(said(plain)) - empty == text_tokens(FABLE) + 1


def test_signatures_and_redacted_thoughts_cost_nothing():
    thought = {"type": "thinking", "thinking": FABLE, "signature": "s" * 4000}
    redacted = {"type": "redacted_thinking", "data": "s" * 4000}
    assert count_tokens(said(thought, redacted)) - count_tokens(said()) == text_tokens(FABLE)


def test_depth_is_no_matter():
    value: object = "a"
    for _ in range(5000):
        value = [value]
    assert count_tokens({"messages": value}) >= 1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
names = st.sampled_from(["type", "text", "source", "data", "content", "title", "cache_control"]) | st.text(
    max_size=3
)
kinds = st.sampled_from(["text", "image", "document", "thinking", "redacted_thinking", "base64"])
values = st.recursive(
    scalars | kinds, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4)
)


@given(st.dictionaries(st.sampled_from(["system", "messages", "tools"]), values))
def test_it_never_fails(value):
    assert count_tokens(value) >= 1


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=20))
def test_more_is_never_less(texts, added):
    assert count_tokens(said(*texts, added)) >= count_tokens(said(*texts))
