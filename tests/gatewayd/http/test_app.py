"""Tests for gatewayd.http.app."""

import pytest

from gatewayd.http.app import spellings


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a", ("/a", "/a/")),
        ("/a/", ("/a", "/a/")),
        ("/", ("/",)),
        ("/models/{id:.+}", ("/models/{id:.+}",)),
    ],
)
def test_spellings(path: str, expected: tuple[str, ...]) -> None:
    assert spellings(path) == expected
