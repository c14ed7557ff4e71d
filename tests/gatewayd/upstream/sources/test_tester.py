"""Tests for gatewayd.upstream.sources.tester."""

from typing import Any

import pytest

from gatewayd.catalog.providers.records import ManagedProvider
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ModelListUse, ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.tester import SourceTester
from tests.fakes.providers.upstream import SILENCE, FakeUpstream, Reply, json_reply


def source_tester(seconds: float = 5.0) -> SourceTester:
    return SourceTester(
        lambda each: ProviderConfig(
            each.name,
            SourceKind(each.kind),
            each.base_url,
            key=each.key or None,
            timeouts=UpstreamTimeouts(connect=1.0),
        ),
        lambda: seconds,
    )


async def failure(provider: ManagedProvider, seconds: float = 5.0) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await source_tester(seconds).test(provider)
    return caught.value


async def test_the_models_are_listed_with_the_key(fake: FakeUpstream) -> None:
    offer = await source_tester().test(ManagedProvider("", "p", "openai", fake.openai_url, key="k1"))
    assert (offer.models, offer.version) == (("m",), None)
    assert fake.requests[-1].headers["Authorization"] == "Bearer k1"


async def test_a_runtime_also_tells_its_version(fake: FakeUpstream) -> None:
    fake.script(json_reply({"models": [{"name": "near:latest"}]}), json_reply({"version": "0.9.1"}))
    offer = await source_tester().test(ManagedProvider("", "r", "ollama", fake.base_url))
    assert (offer.models, offer.version) == (("near:latest",), "0.9.1")


@pytest.mark.parametrize("answer", [{}, {"version": 1}, {"version": "1" * 70_000}], ids=str)
async def test_a_runtime_without_a_readable_version_has_none(fake: FakeUpstream, answer: Any) -> None:
    fake.script(json_reply({"models": []}), json_reply(answer))
    assert (await source_tester().test(ManagedProvider("", "r", "ollama", fake.base_url))).version is None


async def test_each_failure_says_what_failed(fake: FakeUpstream) -> None:
    provider = ManagedProvider("", "p", "openai", fake.openai_url, key="secret-k")
    fake.script(json_reply({"error": {"message": "bad key secret-k"}}, status=401))
    wrong = await failure(provider)
    assert wrong.kind is ErrorKind.UPSTREAM_FAILED
    assert "'p'" in wrong.message
    assert "secret-k" not in wrong.message
    gone = await failure(ManagedProvider("", "p", "openai", "http://127.0.0.1:9/v1"))
    assert gone.kind is ErrorKind.UPSTREAM_UNREACHABLE
    fake.script(Reply(steps=[SILENCE]))
    late = await failure(provider, 0.1)
    assert (late.kind, "within 0.1 s" in late.message) == (ErrorKind.TIMEOUT, True)


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        (json_reply({"error": {"message": "no key"}}, status=401), ""),
        (json_reply({"error": {"message": "no key"}}, status=400), ""),
        (json_reply({"data": [{"id": "m"}]}), "its models are listed without a key"),
        (json_reply({"error": {"message": "slowly"}}, status=429), "whether its list of models needs a key"),
        (json_reply({"error": {"message": "broken"}}, status=500), "whether its list of models needs a key"),
        (Reply(content_type="text/html", steps=[b"<html>"]), "whether its list of models needs a key"),
    ],
    ids=["401", "400", "200", "429", "500", "page"],
)
async def test_a_list_that_needs_no_key_tests_none(fake: FakeUpstream, answer: Reply, doubt: str) -> None:
    fake.script(answer)
    provider = ManagedProvider("", "p", "openai", fake.openai_url, key="k1")
    found = await source_tester().find_key_doubt(provider)
    assert (bool(found), found.startswith(doubt)) == (bool(doubt), True)
    assert "Authorization" not in fake.requests[-1].headers


@pytest.mark.parametrize(
    ("kind", "url", "use", "doubt"),
    [
        ("anthropic", "https://bedrock-runtime.eu-west-1.amazonaws.com", ModelListUse.FILTER, True),
        (
            "anthropic",
            "https://aiplatform.googleapis.com/v1/projects/p",
            ModelListUse.FILTER,
            True,
        ),
        ("openai", "https://acme.test/v1", ModelListUse.REPLACE, True),
        ("bedrock", "https://bedrock.test", ModelListUse.REPLACE, True),
        ("bedrock", "https://bedrock.test", ModelListUse.FILTER, False),
    ],
)
async def test_models_that_are_only_named_test_no_key(
    kind: str, url: str, use: ModelListUse, *, doubt: bool
) -> None:
    """None of these asks the provider."""
    config = ProviderConfig("p", SourceKind(kind), url, key="k", models=("m",), model_list=use)
    tester = SourceTester(lambda _: config, lambda: 5.0)
    assert bool(await tester.find_key_doubt(ManagedProvider("", "p", kind, url, key="k"))) is doubt


def test_an_address_is_checked_as_that_of_the_settings() -> None:
    with pytest.raises(GatewayError, match="base_url"):
        source_tester().validate(ManagedProvider("", "p", "openai", "http://u:p@host"))
