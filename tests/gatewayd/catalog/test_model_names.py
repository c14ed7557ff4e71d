"""Tests for gatewayd.catalog.model_names."""

import pytest

from gatewayd.catalog.model_names import find_listed_name, model_name_variants


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("m", ("m", "m:latest")),
        ("m:1b", ("m:1b",)),
        ("m:latest", ("m:latest", "m")),
        ("host:5000/lib/m", ("host:5000/lib/m", "host:5000/lib/m:latest")),
    ],
)
def test_a_name_without_a_tag_is_the_latest(name: str, meant: tuple[str, ...]) -> None:
    assert model_name_variants(name) == meant


@pytest.mark.parametrize(
    ("name", "listed", "expected"),
    [
        ("m", {"m:latest"}, "m:latest"),
        ("m", {"m", "m:latest"}, "m"),
        ("m:latest", {"m"}, "m"),
        ("m:1b", {"m:latest"}, "m:1b"),
        ("gone", {"m"}, "gone"),
    ],
)
def test_listed_spelling_is_taken(name: str, listed: set[str], expected: str) -> None:
    assert find_listed_name(name, listed) == expected
