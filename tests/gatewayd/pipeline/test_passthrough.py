"""Tests for gatewayd.pipeline.passthrough."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Body
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.passthrough import RequestForwarder
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model
from tests.fakes.storage.response_ids import MemoryResponseIds

ADMIN = make_actor()


@dataclass
class Reply:
    """An answer of one read, or without a body."""

    content_type: str = "application/json"
    status: int = 200
    closed: bool = False
    read: bytes = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        read, self.read = self.read, b""
        if not read:
            raise StopAsyncIteration
        return read

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Forwarder(FakeSource):
    """A fake source that passes on."""

    reply: Reply = field(default_factory=Reply)
    context: CallContext | None = None
    sent: list[tuple[str, str, Any]] = field(default_factory=list)

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        self.sent.append((method, path, body))
        self.context = context
        if self.failure is not None:
            raise self.failure
        return self.reply


@dataclass
class Runtime(Forwarder):
    """A fake local runtime."""

    prefix: str = ""


@pytest.fixture
async def catalog() -> AsyncIterator[Catalog]:
    tasks = TaskRegistry()
    yield Catalog(FakeRecords(), tasks, CatalogOptions())
    await tasks.close()


async def using(catalog: Catalog, source: FakeSource) -> RequestForwarder:
    source.models = [make_model("m")]
    catalog.use([source])
    await catalog.list(ADMIN)
    return RequestForwarder(
        catalog, NoFilters(), ResponseIds(MemoryResponseIds(), DeferredWrites(TaskRegistry()))
    )


async def refused(forwarding: RequestForwarder, body: Body | None = None) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await forwarding.run("/responses", {"model": "m"} if body is None else body, RequestCaller(ADMIN))
    return caught.value


async def test_only_the_name_of_the_model_is_replaced(catalog: Catalog) -> None:
    source = Forwarder()
    forwarding = await using(catalog, source)
    sent = {"model": "m", "prompt": ["a"], "odd": None}
    await forwarding.run("/completions", sent, RequestCaller(ADMIN))
    assert source.sent == [("POST", "/completions", {"model": "up-m", "prompt": ["a"], "odd": None})]
    assert sent["model"] == "m"
    assert not source.reply.closed


async def test_a_runtime_has_its_openai_style_paths_elsewhere(catalog: Catalog) -> None:
    source = Runtime()
    forwarding = await using(catalog, source)
    await forwarding.run("/completions", {"model": "m"}, RequestCaller(ADMIN))
    assert source.sent[0][:2] == ("POST", "/v1/completions")


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"model": ["m"]}, {"model": None}])
async def test_the_model_must_be_named(catalog: Catalog, body: Body) -> None:
    error = await refused(await using(catalog, Forwarder()), body)
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "model")


async def test_sources_without_the_endpoint(catalog: Catalog) -> None:
    page = Forwarder(reply=Reply("Text/HTML; charset=utf-8"))
    said = GatewayError(
        ErrorKind.NOT_FOUND, "cannot get an answer from provider 'fake': it answered 404 (gone)"
    )
    for source in (FakeSource(), page):
        error = await refused(await using(catalog, source))
        assert (error.kind, error.code) == (ErrorKind.NOT_FOUND, "endpoint_not_found")
        assert "/responses with model 'm': 'fake'" in error.message
    assert page.reply.closed
    forwarding = await using(catalog, missing := Forwarder())
    missing.failure = said
    error = await refused(forwarding)
    assert error.code == "endpoint_not_found"
    assert "(gone)" in error.message


async def test_other_failures_are_the_sources_own(catalog: Catalog) -> None:
    forwarding = await using(catalog, source := Forwarder())
    source.failure = GatewayError(ErrorKind.RATE_LIMITED, "cannot", retry_after=3)
    assert await refused(forwarding) is source.failure


async def test_a_model_without_a_grant_is_unknown(catalog: Catalog) -> None:
    forwarding = await using(catalog, source := Forwarder())
    with pytest.raises(GatewayError) as caught:
        await forwarding.run("/completions", {"model": "m"}, RequestCaller(make_actor("u2", Role.USER)))
    assert caught.value.code == "model_not_found"
    assert source.sent == []


async def test_a_response_is_continued_by_who_received_it(catalog: Catalog) -> None:
    forwarding = await using(catalog, source := Forwarder(reply=Reply(read=b'{"id": "r1", "output": []}')))
    async for _ in await forwarding.run("/responses", {"model": "m", "input": "a"}, RequestCaller(ADMIN)):
        pass
    body = {"model": "m", "input": "b", "previous_response_id": "r1"}
    await forwarding.run("/responses", body, RequestCaller(ADMIN))
    assert source.sent[-1][2]["previous_response_id"] == "r1"
    with pytest.raises(GatewayError) as caught:
        await forwarding.run("/responses", body, RequestCaller(make_actor("u2")))
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
    error = await refused(forwarding, {"model": "m", "Previous_Response_ID": "r1"})
    assert error.param == "previous_response_id"
    assert len(source.sent) == 2
