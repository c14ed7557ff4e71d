from typing import get_args

import pytest
from pydantic import SecretStr, ValidationError

from gatewayd.dialects.providers.family import MAKERS
from gatewayd.settings.providers import Maker, Provider, from_ollama_list, from_openai_lists


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com"),
        ("ollama", "http://127.0.0.1:11434"),
    ],
)
def test_the_address_follows_the_kind(kind: str, url: str) -> None:
    assert Provider.model_validate({"name": "x", "kind": kind}).base_url == url


def test_without_a_kind_it_is_openai() -> None:
    assert Provider.model_validate({"name": "x"}) == Provider(
        name="x", kind="openai", base_url="https://api.openai.com/v1"
    )


def test_everything_given() -> None:
    provider = Provider.model_validate(
        {
            "name": "lab",
            "base_url": "http://lab:8000/v1/",
            "key": "k",
            "prefix": "lab.",
            "models": ["a", "b"],
            "connect_timeout": 1,
            "timeout": "",
        }
    )
    assert provider.base_url == "http://lab:8000/v1"
    assert provider.models == ("a", "b")
    assert provider.connect_timeout == 1.0
    assert provider.timeout is None
    assert "'k'" not in repr(provider)


@pytest.mark.parametrize("bad", [{}, {"name": ""}, {"name": "x", "extra": 1}, {"name": "x", "key": "a b"}])
def test_bad_tables(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Provider.model_validate(bad)


def test_lists_are_matched_by_position() -> None:
    providers = list(from_openai_lists(["http://a", ""], [SecretStr(""), SecretStr("2")]))
    assert [(each.name, each.base_url, each.key.get_secret_value()) for each in providers] == [
        ("openai", "http://a", ""),
        ("openai-2", "https://api.openai.com/v1", "2"),
    ]
    [alone] = from_openai_lists([], [SecretStr("k")])
    assert alone.base_url == "https://api.openai.com/v1"
    assert list(from_openai_lists([], [])) == []


def test_runtimes_are_numbered() -> None:
    assert [each.name for each in from_ollama_list(["http://a", "http://b"])] == ["ollama", "ollama-2"]


def test_the_makers_are_those_of_the_rules() -> None:
    assert set(get_args(get_args(Maker)[0])) == {"", *MAKERS}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"headers": {"X-Team": "red"}, "keys": ["a", "b"]}, None),
        ({"headers": {"Host": "canary"}}, "the gateway writes it"),
        ({"headers": {"Authorization": "canary"}, "keys": ["a"]}, "beside a key"),
        ({"kind": "azure", "base_url": "https://acme.test"}, "name the deployments"),
        ({"kind": "bedrock", "keys": ["a"]}, "takes one key"),
    ],
)
def test_what_a_table_cannot_be_as_a_whole(fields: dict[str, object], words: str | None) -> None:
    problem = Provider.model_validate({"name": "x", **fields}).find_problem()
    assert (words is None) == (problem is None)
    assert (words or "") in (problem or "")
    assert "canary" not in (problem or "")


def test_secrets_are_not_shown() -> None:
    table = {"name": "x", "key": "canary1", "keys": ["canary2"], "headers": {"X-Team": "canary3"}}
    provider = Provider.model_validate(table)
    assert provider.all_keys == ("canary1", "canary2")
    assert provider.header_pairs == (("X-Team", "canary3"),)
    assert "canary" not in repr(provider)
