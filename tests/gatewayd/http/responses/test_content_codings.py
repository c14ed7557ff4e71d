"""Tests for gatewayd.http.responses.content_codings."""

import gzip

import brotli
import pytest

from gatewayd.http.responses.content_codings import choose_coding, encode, weighted


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("", "identity"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("GZIP;Q=0.5", "gzip"),
        ("br;q=0, gzip", "gzip"),
        ("br;q=0.5, gzip;q=0.8", "gzip"),
        ("*", "br"),
        ("*;q=0", "identity"),
        ("*, br;q=0", "gzip"),
        ("identity, gzip;q=0.5", "identity"),
        ("gzip;q=0", "identity"),
        ("identity;q=0", "identity"),
        ("br;q=nonsense, gzip;q=2", "identity"),
        ("deflate", "identity"),
        (",;,;q=1,", "identity"),
        ("br," * 2000, "br"),
    ],
)
def test_choice_by_accept_encoding(accepted: str, chosen: str) -> None:
    assert choose_coding(accepted) == chosen


def test_weights() -> None:
    assert weighted(" de-AT ;q=0.7") == ("de-AT", 0.7)
    assert weighted("de") == ("de", 1.0)
    assert weighted("de;q=1.5") == ("de", 0.0)


def test_codings_give_the_same_bytes_back() -> None:
    data = b"page" * 1000
    assert brotli.decompress(encode(data, "br")) == data
    assert gzip.decompress(encode(data, "gzip")) == data
    assert encode(data, "gzip") == encode(data, "gzip")
    assert encode(data, "identity") is data
