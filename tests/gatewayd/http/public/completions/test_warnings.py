"""What a source leaves out of a request is told in X-Gateway-Warning by every door, streamed or not."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from gatewayd.catalog.records import ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.daemons.runtime_site import serving_runtimes, two_runtimes
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.catalog import local_counts
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.strict import openai
from tests.fakes.providers.strict.base import Body, StrictProvider, StrictRefusalError, openai_error
from tests.fakes.storage.chat_runs import make_plain_runs

HEADER = "X-Gateway-Warning"
GPT = openai.checks("gpt-5")
BODY = {
    "model": "gpt-5",
    "messages": [{"role": "user", "content": "hi"}],
    "temperature": 0.5,
    "max_tokens": 9,
}
TOLD = "left out temperature: gpt-5 does not take it"


def overloaded(_: Body) -> None:
    raise StrictRefusalError(503, openai_error("overloaded"))


@asynccontextmanager
async def asking(*providers: StrictProvider, record: ModelRecord | None = None) -> AsyncIterator[Client]:
    """Serve chats and messages over started providers, of which the last is asked first."""
    async with AsyncExitStack() as stack:
        tasks, admin = TaskRegistry(), make_actor()
        stack.push_async_callback(tasks.close)
        sources = [
            open_source(ProviderConfig(f"acme{place}", SourceKind.OPENAI, provider.base_url))
            for place, provider in enumerate(providers)
        ]
        for source in sources:
            stack.push_async_callback(source.close)
        records = FakeRecords()
        if record is not None:
            await records.put(record)
        catalog = Catalog(records, tasks, CatalogOptions())
        await catalog.load()
        catalog.use(sources)
        await catalog.list(admin)
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        chats = ChatRoutes(make_plain_runs(catalog, pipeline, tasks), body_limit=100_000, clock=lambda: 1)
        messages = MessageRoutes(pipeline, local_counts(catalog), body_limit=100_000)
        rows = [*chats.routes(), *messages.routes()]
        yield await stack.enter_async_context(serving(rows, {"admin": admin}))


async def told(client: Client, path: str, body: dict[str, Any]) -> str:
    reply = await client.post(path, json=body, headers=bearer("admin"))
    text = await reply.text()
    assert reply.status == 200, text
    assert "Hello." in text
    return reply.headers.get(HEADER, "")


@pytest.mark.parametrize("is_stream", [False, True])
async def test_chats_and_messages(is_stream: bool) -> None:
    async with StrictProvider(*GPT, models=["gpt-5"]) as provider, asking(provider) as client:
        for path in ("/v1/chat/completions", "/v1/messages"):
            assert await told(client, path, {**BODY, "stream": is_stream}) == TOLD
        plain = {name: value for name, value in BODY.items() if name != "temperature"}
        assert await told(client, "/v1/chat/completions", {**plain, "stream": is_stream}) == ""
        assert provider.answered[0]["max_completion_tokens"] == 9
    assert provider.refused == []


@pytest.mark.parametrize("is_stream", [False, True])
async def test_chats_of_runtimes(is_stream: bool) -> None:
    async with StrictProvider(*GPT, models=["gpt-5"]) as provider:
        source = open_source(ProviderConfig("acme", SourceKind.OPENAI, provider.base_url))
        async with two_runtimes(source) as scene, serving_runtimes(scene) as client:  # type: ignore[arg-type]
            asked = {
                "model": "gpt-5",
                "messages": BODY["messages"],
                "options": {"temperature": 0.5, "num_ctx": 9},
                "stream": is_stream,
            }
            header = await told(client, "/ollama/api/chat", asked)
        await source.close()
    assert TOLD in header
    assert "num_ctx" in header


async def test_a_source_that_failed_tells_nothing() -> None:
    async with (
        StrictProvider(*GPT, models=["gpt-5"]) as good,
        StrictProvider(overloaded, models=["gpt-5"]) as bad,
        asking(good, bad) as client,
    ):
        assert await told(client, "/v1/chat/completions", BODY) == TOLD
    assert (len(bad.refused), len(good.answered)) == (1, 1)


async def test_the_family_of_a_record_decides() -> None:
    checks: Sequence[Any] = openai.checks("gpt-5.2")
    record = ModelRecord(
        "our-own", "u1", "Ours", meta={"family": "gpt-5.2", "provider_rules": {"drop": ["user"]}}
    )
    async with (
        StrictProvider(*checks, models=["our-own"]) as provider,
        asking(provider, record=record) as client,
    ):
        asked = {**BODY, "model": "our-own", "reasoning_effort": "minimal", "user": "ada"}
        header = await told(client, "/v1/chat/completions", asked)
    assert "'minimal' to 'low'" in header
    assert "left out user" in header
    assert provider.refused == []
