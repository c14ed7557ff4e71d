"""Tests for gatewayd.upstream.sources.tester."""

from typing import Any

import pytest

from gatewayd.catalog.providers.records import ManagedProvider
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
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


def test_an_address_is_checked_as_that_of_the_settings() -> None:
    with pytest.raises(GatewayError, match="base_url"):
        source_tester().validate(ManagedProvider("", "p", "openai", "http://u:p@host"))
