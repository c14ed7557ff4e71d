"""Tests for gatewayd.http.public.models.anthropic_lists."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.models.anthropic_lists import add_dialect_fields, model_page

MODELS = [{"id": name, "name": name.upper(), "created": 0} for name in "abcde"]


def ids(**query: str) -> tuple[str, bool]:
    found = model_page(MODELS, query)
    names = "".join(model["id"] for model in found["data"])
    assert (found["first_id"], found["last_id"]) == ((names[0], names[-1]) if names else (None, None))
    return names, found["has_more"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ("abcde", False)),
        ({"limit": "2"}, ("ab", True)),
        ({"limit": "5"}, ("abcde", False)),
        ({"limit": "2", "after_id": "b"}, ("cd", True)),
        ({"limit": "2", "after_id": "c"}, ("de", False)),
        ({"after_id": "e"}, ("", False)),
        ({"limit": "2", "before_id": "d"}, ("bc", True)),
        ({"limit": "2", "before_id": "c"}, ("ab", False)),
        ({"before_id": "a"}, ("", False)),
        ({"after_id": "a", "before_id": "e"}, ("bcd", False)),
        ({"after_id": "d", "before_id": "b"}, ("", False)),
        ({"after_id": ""}, ("abcde", False)),
    ],
)
def test_pages(query: dict[str, str], expected: tuple[str, bool]) -> None:
    assert ids(**query) == expected


@pytest.mark.parametrize(
    "query",
    [
        *({"limit": limit} for limit in ("0", "-1", "1001", "x", "", "9" * 5000, "\u0661")),
        {"after_id": "nope"},
        {"before_id": "nope"},
    ],
)
def test_bad_queries_are_named(query: dict[str, str]) -> None:
    with pytest.raises(GatewayError) as caught:
        model_page(MODELS, query)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, *query)


def test_a_model_keeps_our_fields_and_what_its_provider_says() -> None:
    told = {"id": "x", "max_tokens": 9, "capabilities": {"thinking": {}}, "lifecycle": "retired"}
    listed = {"id": "p.x", "name": "X", "created": 1_700_000_000, "object": "model", "openai": told}
    assert add_dialect_fields(listed) == {
        **listed,
        "type": "model",
        "display_name": "X",
        "created_at": "2023-11-14T22:13:20Z",
        "max_tokens": 9,
        "capabilities": {"thinking": {}},
        "lifecycle": "retired",
    }
    assert add_dialect_fields({**listed, "openai": 3})["lifecycle"] == "active"
