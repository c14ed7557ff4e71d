"""Tests for gatewayd.http.app."""

import pytest

from gatewayd.http.app import path_variants, with_repeated_slashes


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
    assert path_variants(path) == expected


def test_doubled_slashes() -> None:
    assert with_repeated_slashes("/api/v1/scim/v2/Users/{id}") == (
        "/api/v1/scim/v2{slash0:/+}Users{slash1:/+}{id}{slash:/*}"
    )
    assert with_repeated_slashes("/api/v1/scim/v2") == "/api/v1/scim/v2{slash:/*}"
