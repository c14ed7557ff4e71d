"""Tests for gatewayd.catalog.providers.forms."""

from typing import Any

import pytest

from gatewayd.catalog.providers.forms import (
    MAX_MODEL_IDS,
    MAX_PROVIDERS,
    named,
    read_form,
    read_provider,
    render_form,
)
from gatewayd.catalog.providers.options import MASK, MAX_OPTION_ENTRIES
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily
from gatewayd.errors import ErrorKind, GatewayError

OPENAI, OLLAMA = ProviderFamily.OPENAI, ProviderFamily.OLLAMA


def refused(family: ProviderFamily, sent: dict[str, Any]) -> str | None:
    with pytest.raises(GatewayError) as caught:
        read_form(family, sent)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    return caught.value.param


def one(**options: Any) -> dict[str, Any]:
    return {"OPENAI_API_BASE_URLS": ["http://a.test"], "OPENAI_API_CONFIGS": {"0": options}}


def test_the_parallel_lists_are_joined() -> None:
    sent = {
        "ENABLE_OPENAI_API": False,
        "OPENAI_API_BASE_URLS": ["http://a.test/v1/", "https://api.anthropic.com"],
        "OPENAI_API_KEYS": ["k"],
        "OPENAI_API_CONFIGS": {"0": {"prefix_id": "acme", "model_ids": ["x", "x"], "enable": False}},
        "revision": 3,
    }
    form = read_form(OPENAI, sent)
    assert (form.enabled, form.revision) == (False, 3)
    first, second = form.providers
    assert (first.base_url, first.key, first.prefix, first.models, first.is_active) == (
        "http://a.test/v1",
        "k",
        "acme.",
        ("x",),
        False,
    )
    assert (second.kind, second.key, second.is_active) == ("anthropic", "", True)


def test_older_clients_list_options_by_address_and_runtimes_have_their_keys_there() -> None:
    sent = {
        "OLLAMA_BASE_URLS": ["http://a.test", "http://b.test"],
        "OLLAMA_API_CONFIGS": {"http://a.test": {"key": "k", "name": "near"}},
    }
    first, second = read_form(OLLAMA, sent).providers
    assert (first.kind, first.key, first.name) == ("ollama", "k", "near")
    assert named(second).name == "b.test"


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({}, "OPENAI_API_BASE_URLS"),
        ({"OPENAI_API_BASE_URLS": "http://a.test"}, "OPENAI_API_BASE_URLS"),
        ({"OPENAI_API_BASE_URLS": ["http://a.test"] * (MAX_PROVIDERS + 1)}, "OPENAI_API_BASE_URLS"),
        ({"OPENAI_API_BASE_URLS": [], "OPENAI_API_KEYS": ["k"]}, "OPENAI_API_KEYS"),
        ({"OPENAI_API_BASE_URLS": [""]}, "base_url"),
        ({"OPENAI_API_BASE_URLS": ["http://a.test/" + "x" * 2048]}, "base_url"),
        ({"OPENAI_API_BASE_URLS": ["http://a.test"], "OPENAI_API_KEYS": ["k" * 4097]}, "key"),
        ({"OPENAI_API_BASE_URLS": ["http://a.test"], "OPENAI_API_CONFIGS": []}, "OPENAI_API_CONFIGS"),
        (
            {"OPENAI_API_BASE_URLS": ["http://a.test"], "OPENAI_API_CONFIGS": {"0": 1}},
            "OPENAI_API_CONFIGS.0",
        ),
        ({"OPENAI_API_BASE_URLS": [], "ENABLE_OPENAI_API": "yes"}, "ENABLE_OPENAI_API"),
        ({"OPENAI_API_BASE_URLS": [], "revision": True}, "revision"),
        (one(enable="yes"), "enable"),
        (one(name="a\nb"), "name"),
        (one(name="n" * 65), "name"),
        (one(prefix_id=1), "prefix_id"),
        (one(model_ids="x"), "model_ids"),
        (one(model_ids=[""]), "model_ids"),
        (one(model_ids=["x" * 257]), "model_ids"),
        (one(model_ids=["x"] * (MAX_MODEL_IDS + 1)), "model_ids"),
        (one(provider="vertex"), "provider"),
        (one(connection_type="far"), "connection_type"),
        (one(auth_type="session"), "auth_type"),
        (one(passthrough_params=["x"]), "passthrough_params"),
        (one(azure="yes"), "azure"),
        (one(headers=[]), "headers"),
        (one(headers={"X": 1}), "headers"),
        (one(headers={"X": "a\nb"}), "headers"),
        (one(headers={str(number): "a" for number in range(MAX_OPTION_ENTRIES + 1)}), "headers"),
        (one(families={"prod": 5}), "families"),
        (one(keys="k"), "keys"),
        (one(keys=[""]), "keys"),
        (one(keys=["k" * 4097]), "keys"),
        (one(keys=["k"] * 101), "keys"),
        (one(api_version=5), "api_version"),
        (one(api_type="telegraph"), "api_type"),
        (one(api_type=["x"]), "api_type"),
        (one(upstream="telegraph"), "upstream"),
        (one(upstream=["x"]), "upstream"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_wrong_field_is_named(sent: dict[str, Any], param: str) -> None:
    assert refused(OPENAI, sent) == param


def test_no_key_is_sent_with_the_authentication_none() -> None:
    assert read_provider(OPENAI, "http://a.test", "k", {"auth_type": "none"}).key == ""


def test_a_form_is_rendered_without_keys_and_can_be_read_again() -> None:
    form = read_form(OPENAI, {**one(prefix_id="p", name="A"), "OPENAI_API_KEYS": ["secret"]})
    states = {"A": {"models": 2, "problem": "cannot reach it"}}
    shown = render_form(form, states, {})
    assert shown["OPENAI_API_KEYS"] == [MASK]
    assert "secret" not in str(shown)
    options = shown["OPENAI_API_CONFIGS"]["0"]
    assert (options["models"], options["problem"], options["origin"]) == (2, "cannot reach it", "database")
    again = read_form(OPENAI, {**shown, "ENABLE_OPENAI_API": True, "revision": 1}).providers[0]
    assert (again.prefix, again.name, again.key) == ("p.", "A", MASK)


def test_the_key_of_a_runtime_is_masked_in_its_options() -> None:
    sent = {"OLLAMA_BASE_URLS": ["http://a.test"], "OLLAMA_API_CONFIGS": {"0": {"key": "s"}}}
    form = read_form(OLLAMA, sent)
    shown = render_form(form, {}, {"": "its name is taken"})
    assert shown["OLLAMA_API_CONFIGS"]["0"]["key"] == MASK
    assert shown["OLLAMA_API_CONFIGS"]["0"]["connection_type"] == "local"
    assert shown["OLLAMA_API_CONFIGS"]["0"]["problem"] == "its name is taken"


def test_a_provider_without_a_usable_address_is_named_by_its_kind() -> None:
    assert named(ManagedProvider("", "", "openai", "no\taddress")).name == "openai"


@pytest.mark.parametrize(
    ("options", "kind", "upstream"),
    [
        ({"azure": True, "api_type": "responses"}, "azure", "responses"),
        ({"provider": "azure", "api_type": "chat_completions"}, "azure", "chat"),
        ({"upstream": "responses_with_tools"}, "openai", "responses_with_tools"),
        ({}, "openai", None),
    ],
)
def test_kind_and_protocol(options: dict[str, Any], kind: str, upstream: str | None) -> None:
    provider = read_provider(OPENAI, "http://a.test", "k", options)
    assert (provider.kind, provider.options.upstream) == (kind, upstream)


def test_options_are_rendered_without_their_secrets() -> None:
    sent = {
        "keys": ["secret-2", "secret-3"],
        "headers": {"X-Team": "secret-4"},
        "api_version": "2025-01-01",
        "families": {"prod": "gpt-5"},
    }
    shown = render_form(read_form(OPENAI, one(**sent)), {}, {})["OPENAI_API_CONFIGS"]["0"]
    assert "secret" not in str(shown)
    assert (shown["keys"], shown["headers"]) == ([MASK, MASK], {"X-Team": MASK})
    assert (shown["api_version"], shown["families"], shown["upstream"]) == (
        "2025-01-01",
        {"prod": "gpt-5"},
        "",
    )
