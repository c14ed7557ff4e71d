"""A provider that refuses to be asked for the usage of a stream."""

import json

from aiohttp import web
from aiohttp.test_utils import TestServer

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.dialects import openai
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, make_actor

REFUSAL = {"message": "Unrecognized request argument supplied: stream_options", "param": "stream_options"}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
CHOICE = {"index": 0, "delta": {"content": "abcdefgh"}, "finish_reason": "stop"}


async def list_models(request: web.Request) -> web.StreamResponse:
    return web.json_response({"data": [{"id": "m"}]})


async def refuse_the_option(request: web.Request) -> web.StreamResponse:
    if "stream_options" in await request.json():
        return web.json_response({"error": {**REFUSAL, "type": "invalid_request_error"}}, status=400)
    text = f"data: {json.dumps({**CHUNK, 'choices': [CHOICE]})}\n\ndata: [DONE]\n\n"
    return web.Response(text=text, content_type="text/event-stream")


class Ends:
    def __init__(self) -> None:
        self.calls: list[MeteredCall] = []

    def begun(self, call: MeteredCall) -> None:
        return

    def first(self, call: MeteredCall) -> None:
        return

    def finished(self, call: MeteredCall) -> None:
        self.calls.append(call)


async def test_it_is_asked_again_without_a_warning_and_its_tokens_are_estimated() -> None:
    app = web.Application()
    app.router.add_get("/models", list_models)
    app.router.add_post("/chat/completions", refuse_the_option)
    ends, tasks = Ends(), TaskRegistry()
    async with TestServer(app) as server:
        source = OpenAiSource(ProviderConfig("p", SourceKind.OPENAI, str(server.make_url("/")), "sk-test"))
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions(), meter=CallMeter([ends]))
        catalog.use([source])
        await catalog.list_all()
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        answer = await pipeline.run(openai.parse_request(asked), make_actor())
        assert answer.chunks is not None
        _ = [chunk async for chunk in answer.chunks]
        await answer.chunks.aclose()
        await source.close()
    await tasks.close()
    (call,) = ends.calls
    assert answer.warnings == []
    assert (call.outcome, call.attempts, call.retries) == (CallOutcome.ANSWERED, 1, 1)
    assert call.is_estimated
    assert call.usage is not None
    assert call.usage.completion == TokenUsage(completion=2).completion
