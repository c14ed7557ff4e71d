"""Tests for gatewayd.pipeline.embeddings."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Body
from gatewayd.dialects.embeddings import render
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model

ADMIN = make_actor()


def vectors(body: Body) -> Body:
    data = [{"index": 7, "embedding": [float(text), 0]} for text in body["input"]]
    return {"data": data, "model": "secret", "usage": {"prompt_tokens": len(data), "total_tokens": len(data)}}


@dataclass
class Embedder(FakeSource):
    """A fake source that gives vectors; `gate`, when set, holds the answers back until it is opened."""

    answer: Callable[[Body], Body] = vectors
    gate: asyncio.Event | None = None
    running: int = 0
    most: int = 0
    cancelled: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    room: int = 0

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        self.asked.append(body)
        self.contexts.append(context)
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self.room:
            self.full.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            return self.answer(body)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


@pytest.fixture
async def catalog() -> AsyncIterator[Catalog]:
    tasks = TaskRegistry()
    yield Catalog(FakeRecords(), tasks, CatalogOptions())
    await tasks.close()


async def using(catalog: Catalog, source: FakeSource) -> EmbeddingService:
    source.models = [make_model("m")]
    catalog.use([source])
    await catalog.list(ADMIN)
    return EmbeddingService(catalog, NoFilters())


def asking(count: int, **fields: Any) -> Body:
    return {"model": "m", "input": [str(number) for number in range(count)], **fields}


async def test_vectors_of_another_length_than_asked_for_are_no_success(catalog: Catalog) -> None:
    embeddings = await using(catalog, Embedder())
    with pytest.raises(GatewayError, match="vectors of 2 numbers") as refused:
        await embeddings.run(asking(1, dimensions=3), RequestCaller(ADMIN))
    assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, "dimensions")


async def test_inputs_go_in_batches_and_vectors_come_back_in_order(catalog: Catalog) -> None:
    source = Embedder()
    embeddings = await using(catalog, source)
    answer = await embeddings.run(asking(130, dimensions=2), RequestCaller(ADMIN, "r1"))
    assert sorted(len(body["input"]) for body in source.asked) == [2, 64, 64]
    assert {(body["model"], body["dimensions"]) for body in source.asked} == {("up-m", 2)}
    assert [item["embedding"] for item in answer["data"]] == [[float(n), 0] for n in range(130)]
    assert [item["index"] for item in answer["data"]] == list(range(130))
    assert {item["object"] for item in answer["data"]} == {"embedding"}
    assert (answer["object"], answer["model"]) == ("list", "m")
    assert answer["usage"] == {"prompt_tokens": 130, "total_tokens": 130}
    assert {(context.request_id, context.user_id) for context in source.contexts} == {("r1", "u1")}


async def test_only_so_many_batches_run_at_once(catalog: Catalog) -> None:
    source = Embedder(gate=asyncio.Event(), room=4)
    embeddings = await using(catalog, source)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(embeddings.run(asking(10 * 64), RequestCaller(ADMIN, "r1")))
        await source.full.wait()
        assert source.gate is not None
        source.gate.set()
    assert (len(source.asked), source.most) == (10, 4)
    assert len(task.result()["data"]) == 640


async def test_leaving_cancels_every_batch(catalog: Catalog) -> None:
    source = Embedder(gate=asyncio.Event(), room=4)
    embeddings = await using(catalog, source)
    task = asyncio.get_running_loop().create_task(embeddings.run(asking(640), RequestCaller(ADMIN, "r1")))
    await source.full.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (source.cancelled, source.running, len(source.asked)) == (4, 0, 4)


async def test_one_failing_batch_is_the_answer_and_ends_the_others(catalog: Catalog) -> None:
    failure = GatewayError(
        ErrorKind.RATE_LIMITED, "cannot get an answer from provider 'fake': 429", retry_after=7
    )

    class Failing(Embedder):
        async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
            if body["input"][0] == "64":
                await self.full.wait()
                raise failure
            return await super().embed(body, model, context)

    source = Failing(gate=asyncio.Event(), room=3)
    embeddings = await using(catalog, source)
    with pytest.raises(GatewayError) as caught:
        await embeddings.run(asking(64 * 9), RequestCaller(ADMIN, "r1"))
    assert caught.value is failure
    assert (source.cancelled, len(source.asked)) == (3, 3)


def item(*numbers: Any) -> dict[str, Any]:
    return {"embedding": list(numbers)}


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        [item(1.0)],
        [item(1.0)] * 3,
        [item(1.0), None],
        [item(1.0), {}],
        [item(1.0), {"embedding": "AAAA"}],
        [item(1.0), item()],
        [item(1.0), item("1")],
        [item(1.0), item(None)],
        [item(1.0), item(True)],
        [item(1.0), item(float("nan"))],
        [item(1.0), item(float("inf"))],
        [item(1.0), item(1.0, 2.0)],
    ],
)
async def test_an_answer_that_is_none_is_a_failure_of_the_provider(catalog: Catalog, data: Any) -> None:
    embeddings = await using(catalog, Embedder(answer=lambda _: {"data": data}))
    with pytest.raises(GatewayError) as caught:
        await embeddings.run(asking(2), RequestCaller(ADMIN, "r1"))
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert "provider 'fake'" in caught.value.message


async def test_batches_must_agree_on_the_length(catalog: Catalog) -> None:
    def growing(body: Body) -> Body:
        return {"data": [item(*range(len(body["input"])))] * len(body["input"])}

    embeddings = await using(catalog, Embedder(answer=growing))
    with pytest.raises(GatewayError, match="differ in length"):
        await embeddings.run(asking(65), RequestCaller(ADMIN, "r1"))


async def test_usage_is_only_what_counts(catalog: Catalog) -> None:
    def odd(body: Body) -> Body:
        return {**vectors(body), "usage": {"prompt_tokens": "9", "total_tokens": -1}}

    embeddings = await using(catalog, Embedder(answer=odd))
    answer = await embeddings.run(asking(1), RequestCaller(ADMIN, "r1"))
    assert answer["usage"] == {"prompt_tokens": 0, "total_tokens": 0}
    absurd = {"prompt_tokens": 2**63 - 1, "total_tokens": 2**63 - 1}
    embeddings = await using(catalog, Embedder(answer=lambda body: {**vectors(body), "usage": absurd}))
    answer = await embeddings.run(asking(130), RequestCaller(ADMIN, "r1"))
    assert orjson.loads(render(answer, "m", "float"))["usage"] == {"prompt_tokens": 0, "total_tokens": 0}
    embeddings = await using(catalog, Embedder(answer=lambda _: {"data": [item(1.0)], "usage": None}))
    assert (await embeddings.run(asking(1), RequestCaller(ADMIN, "r1")))["usage"]["total_tokens"] == 0


async def test_a_source_without_the_endpoint(catalog: Catalog) -> None:
    def missing(_: Body) -> Body:
        raise GatewayError(ErrorKind.NOT_FOUND, "cannot get an answer from provider 'fake': it answered 404")

    for source in (FakeSource(), Embedder(answer=missing)):
        embeddings = await using(catalog, source)
        with pytest.raises(GatewayError) as caught:
            await embeddings.run(asking(1), RequestCaller(ADMIN, "r1"))
        assert (caught.value.kind, caught.value.code) == (ErrorKind.NOT_FOUND, "endpoint_not_found")
        assert "/embeddings" in caught.value.message
        assert "'m'" in caught.value.message


async def test_a_model_without_a_grant_is_unknown(catalog: Catalog) -> None:
    source = Embedder()
    embeddings = await using(catalog, source)
    with pytest.raises(GatewayError) as caught:
        await embeddings.run(asking(1), RequestCaller(make_actor("u2", Role.USER), "r1"))
    assert caught.value.code == "model_not_found"
    assert source.asked == []
