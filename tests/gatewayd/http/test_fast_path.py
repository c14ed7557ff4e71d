"""Tests for gatewayd.http.fast_path: chats over real connections on both sides, observed from within."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.app import build_application
from gatewayd.http.fast_path import FastRows
from gatewayd.http.middleware import EdgeOptions, EdgeServices, PublicEdge
from gatewayd.http.observation import ObservedRequest, RequestObservation
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.embeddings import EmbeddingRoutes
from gatewayd.http.public.health import HealthRoutes
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.http.server import HttpServer
from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes, ServedRequest
from gatewayd.metering.interfaces import CallObserver
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.observe.call_notes import CallNotes
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.pipeline.embeddings import MAX_BATCH, EmbeddingService
from gatewayd.pipeline.fast_embeddings import FastEmbeddings
from gatewayd.pipeline.fast_path import FastChats
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.models import FakeRecords, make_actor
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, json_reply
from tests.fakes.storage.chat_runs import make_plain_runs

PATH = "/v1/chat/completions"
SOON = 5.0


class Accounts:
    """Knows actors by credential at once, but one that it has to look up."""

    def __init__(self, actors: dict[str, Actor]) -> None:
        self.actors = actors

    def find(self, credential: str, method: str, path: str, digest: str = "") -> Actor | None:
        if credential == "broken":
            raise RuntimeError("a defect of the fast path")
        return None if credential == "looked-up" else self._found(credential)

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        return self._found(credential)

    def _found(self, credential: str) -> Actor:
        if credential not in self.actors:
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the credential")
        return self.actors[credential]


class Calls(CallObserver):
    """Remembers ended calls, and whether they knew their request."""

    def __init__(self) -> None:
        self.begun_count = 0
        self.ended: list[MeteredCall] = []
        self.known: list[bool] = []

    def begun(self, call: MeteredCall) -> None:
        self.begun_count += 1

    def finished(self, call: MeteredCall) -> None:
        self.ended.append(call)
        self.known.append(CURRENT_NOTES.get() is not None)


class Watcher:
    """A watcher of requests that remembers them."""

    is_on = True

    def __init__(self) -> None:
        self.served_requests: list[ServedRequest] = []
        self.watches_begin = False

    def begun(self, notes: RequestNotes, request: ObservedRequest) -> None:
        """Do nothing."""

    def served(self, served: ServedRequest) -> None:
        self.served_requests.append(served)


@dataclass
class Probe:
    """A database that was asked a moment ago, or a long time ago."""

    is_well: bool = True
    ready: bool = True
    degraded: Sequence[str] = ()
    count: int = 0

    async def database_problem(self) -> GatewayError | None:
        self.count += 1
        return None


class NoConfig:
    """No public configuration."""

    async def describe(self, actor: Actor | None) -> dict[str, Any]:
        raise NotImplementedError


@dataclass
class Site:
    """A gateway with a fast path over one provider."""

    provider: FakeUpstream
    calls: Calls
    watcher: Watcher
    metrics: RequestMetrics
    revocation: AccessRevocation
    meter: CallMeter
    probe: Probe
    client: aiohttp.ClientSession
    url: str

    async def ask(self, text: str = "hi", credential: str = "admin", **fields: Any) -> tuple[int, Any]:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
        async with self.client.post(self.url + PATH, json=body, headers=bearer(credential)) as reply:
            return reply.status, await reply.json() if not fields.get("stream") else await reply.text()

    async def warm(self) -> None:
        """Open a connection to the provider, which the fast path needs."""
        assert (await self.ask(credential="looked-up"))[0] == 200
        assert self.metrics.fast == 0
        await self.turn()

    async def turn(self) -> None:
        """Let the task of the connection wait for its next request."""
        await asyncio.sleep(0.02)


@asynccontextmanager
async def opened(body_limit: int = 100_000) -> AsyncIterator[Site]:
    tasks, admin = TaskRegistry(), make_actor()
    actors = {"admin": admin, "looked-up": admin, "broken": admin, "user": make_actor("u2", Role.USER)}
    calls, watcher, metrics, revocation = Calls(), Watcher(), RequestMetrics(), AccessRevocation()
    async with FakeUpstream() as provider:
        source = OpenAiSource(ProviderConfig("o", SourceKind.OPENAI, provider.openai_url, key="k"))
        meter = CallMeter([calls, CallNotes()])
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions(), meter=meter)
        catalog.use([source])
        await catalog.list(admin)
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        fast = FastChats(catalog, NoFilters(), pipeline.reasoning)
        chats = ChatRoutes(make_plain_runs(catalog, pipeline, tasks), body_limit=body_limit, fast=fast)
        scim = ScimAuthenticator(ScimTokens(False, ()), ScimRequestLog(), "")
        edge = PublicEdge(EdgeServices(Accounts(actors), scim, revocation), tasks, EdgeOptions())
        observation = RequestObservation(metrics, (watcher,))
        probe = Probe()
        health = HealthRoutes(probe, NoConfig(), "1").routes()
        embeddings = EmbeddingRoutes(
            EmbeddingService(catalog, NoFilters()),
            body_limit=body_limit,
            fast=FastEmbeddings(catalog, NoFilters()),
        ).routes()
        rows = FastRows(edge, observation)
        server = HttpServer(
            build_application(
                edge,
                [*chats.routes(), *embeddings, *health],
                body_limit=100_000,
                observation=observation,
                fast_rows=rows,
            )
        )
        await server.open()
        url = "http://" + await server.listen_tcp("127.0.0.1", 0)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as client:
            yield Site(provider, calls, watcher, metrics, revocation, meter, probe, client, url)
        await server.close()
        await source.close()
    await tasks.close()


async def test_plain_requests_are_answered_counted_and_noted() -> None:
    async with opened() as site:
        await site.warm()
        for _ in range(3):
            status, answer = await site.ask()
            assert status == 200
            assert answer["choices"][0]["message"]["content"]
            await site.turn()
        assert site.metrics.fast == 3
        assert site.metrics.in_flight == 0
        assert [call.outcome for call in site.calls.ended] == [CallOutcome.ANSWERED] * 4
        assert all(site.calls.known)
        served = site.watcher.served_requests
        assert [(one.status, one.route, one.email) for one in served] == [
            (200, PATH, served[0].email) for _ in range(4)
        ]
        assert len({one.size for one in served}) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True, "messages": [{"role": "user", "content": "x"}] * 65},
        {"messages": [{"role": "user", "content": "x"}] * 65},
        {"chat_id": "local:1"},
        {"model": "unknown"},
        {"messages": []},
    ],
    ids=["long and streamed", "long", "own fields", "unknown model", "no messages"],
)
async def test_other_requests_are_left_to_the_handler(fields: dict[str, Any]) -> None:
    async with opened() as site:
        await site.warm()
        await site.ask(**fields)
        assert site.metrics.fast == 0
        assert site.metrics.in_flight == 0


async def test_callers_who_are_not_known_at_once_are_left_to_the_handler() -> None:
    async with opened() as site:
        await site.warm()
        assert (await site.ask(credential="looked-up"))[0] == 200
        await site.turn()
        assert (await site.ask(credential="nobody"))[0] == 401
        await site.turn()
        assert (await site.ask(credential="user"))[0] == 404
        assert site.metrics.fast == 0


async def test_traced_requests_are_left_to_the_handler() -> None:
    async with opened() as site:
        await site.warm()
        site.watcher.watches_begin = True
        assert (await site.ask())[0] == 200
        assert site.metrics.fast == 0


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (json_reply({"error": {"message": "bad"}}, 400), 400),
        (json_reply({"id": "1"}), 502),
        (Reply(content_type="application/json", steps=[b"{"]), 502),
        (Reply(before=CUT), 200),
        (Reply(content_type="application/json", steps=[b'{"choices"', CUT]), 502),
        (json_reply({"choices": [], "x": "y" * 70_000}), 200),
    ],
    ids=["refused", "no choices", "no JSON", "lost before the answer", "cut", "long"],
)
async def test_answers_that_the_handler_has_to_read_are_one_call(reply: Reply, status: int) -> None:
    async with opened() as site:
        await site.warm()
        began = site.calls.begun_count
        site.provider.script(reply)
        assert (await site.ask())[0] == status
        assert site.metrics.fast == 0
        assert site.metrics.in_flight == 0
        assert site.calls.begun_count == began + 1
        assert len(site.calls.ended) == began + 1
        assert site.calls.ended[-1].attempts == 1
        assert not site.meter.calls
        notes = site.watcher.served_requests[-1].notes
        assert (notes.model, notes.provider) == ("m", "o")
        asked = [one for one in site.provider.requests if one.method == "POST"]
        # A connection that was lost before the answer is the one case in which a request is repeated.
        assert len(asked) == (3 if reply.before is CUT else 2)


async def test_a_client_that_leaves_cancels_the_call() -> None:
    async with opened() as site:
        await site.warm()
        site.provider.script(Reply(before=SILENCE))
        asking = asyncio.ensure_future(site.ask())
        async with asyncio.timeout(SOON):
            await site.provider.silent.wait()
            asking.cancel()
            await site.provider.closed.wait()
            while site.metrics.in_flight:
                await asyncio.sleep(0.005)
        assert site.calls.ended[-1].outcome is CallOutcome.CANCELLED
        assert site.watcher.served_requests[-1].status == 499
        assert site.metrics.fast == 0


async def test_a_caller_who_loses_access_is_refused_by_the_handler() -> None:
    async with opened() as site:
        await site.warm()
        site.provider.script(Reply(before=SILENCE))
        asking = asyncio.ensure_future(site.ask())
        async with asyncio.timeout(SOON):
            await site.provider.silent.wait()
            site.provider.release.set()
            site.revocation.on_change(AccountChange("u1", is_out=True))
            # The account of this test is still known: a real one is refused now.
            assert (await asking)[0] == 200
        assert [call.outcome for call in site.calls.ended[-2:]] == [
            CallOutcome.CANCELLED,
            CallOutcome.ANSWERED,
        ]
        assert not site.revocation.running()
        assert site.metrics.in_flight == 0


VECTOR = {"object": "embedding", "index": 0, "embedding": [0.5, 1]}
EMBEDDINGS: dict[str, tuple[dict[str, Any], Reply | None, int, bool]] = {
    "text": ({}, None, 200, True),
    "texts": ({"input": ["a", "b"] * 32, "user": "u"}, None, 200, True),
    "base64": ({"encoding_format": "base64"}, None, 200, True),
    "usage": ({}, json_reply({"data": [VECTOR], "usage": {"prompt_tokens": 7, "x": 1}}), 200, True),
    "tokens": ({"input": [1, 2]}, None, 200, True),
    "too many for one call": ({"input": ["a"] * (MAX_BATCH + 1)}, None, 200, False),
    "no input": ({"input": []}, None, 400, False),
    "unknown model": ({"model": "x"}, None, 404, False),
    "name in upper case": ({"Model": "x"}, None, 400, False),
    "other dimensions": ({"dimensions": 3}, json_reply({"data": [VECTOR]}), 400, False),
    "no data": ({}, json_reply({"object": "list"}), 502, False),
    "too few": ({}, json_reply({"data": []}), 502, False),
    "texts in the vector": ({}, json_reply({"data": [{**VECTOR, "embedding": ["a"]}]}), 502, False),
    "too large for base64": (
        {"encoding_format": "base64"},
        json_reply({"data": [{**VECTOR, "embedding": [1e300]}]}),
        502,
        False,
    ),
    "refused": ({}, json_reply({"error": {"message": "bad"}}, 400), 400, False),
    "cut": ({}, Reply(content_type="application/json", steps=[b'{"data"', CUT]), 502, False),
}
"""Requests for embeddings: further fields, the provider's reply, the status, and whether the way is fast."""


@pytest.mark.parametrize("name", EMBEDDINGS)
async def test_embeddings_are_the_same_on_both_ways(name: str) -> None:
    fields, reply, status, is_fast = EMBEDDINGS[name]
    body = {"model": "m", "input": "hello", **fields}
    async with opened() as site:
        await site.warm()
        seen = []
        for credential in ("admin", "looked-up"):
            if reply is not None:
                site.provider.script(reply)
            asked, ended = len(site.provider.requests), len(site.calls.ended)
            url = f"{site.url}/v1/embeddings"
            async with site.client.post(url, json=body, headers=bearer(credential)) as answer:
                shown = {name for name in answer.headers if name != "X-Process-Time"}
                text = (await answer.text()).replace(answer.headers["X-Request-Id"], "ID")
                sent = [(one.path, one.body) for one in site.provider.requests[asked:]]
                calls = [
                    (one.outcome, one.usage, one.attempts, one.endpoint) for one in site.calls.ended[ended:]
                ]
                seen.append((answer.status, text, shown, sent, calls))
            # A provider that closes leaves no idle connection.
            await site.ask(credential="looked-up")
            await site.turn()
        assert seen[0] == seen[1]
        assert seen[0][0] == status
        assert site.metrics.fast == is_fast
        assert site.metrics.in_flight == 0
        assert not site.meter.calls


async def test_a_client_that_leaves_cancels_its_embeddings() -> None:
    async with opened() as site:
        await site.warm()
        site.provider.script(Reply(before=SILENCE))
        body = {"model": "m", "input": "hello"}
        asking = asyncio.ensure_future(
            site.client.post(f"{site.url}/v1/embeddings", json=body, headers=bearer("admin"))
        )
        async with asyncio.timeout(SOON):
            await site.provider.silent.wait()
            asking.cancel()
            await site.provider.closed.wait()
            while site.metrics.in_flight:
                await asyncio.sleep(0.005)
        assert site.calls.ended[-1].outcome is CallOutcome.CANCELLED
        assert not site.meter.calls


async def test_health_is_answered_without_a_credential_or_an_account() -> None:
    async with opened() as site:
        for is_well, is_fast in ((True, True), (True, True), (False, False), (True, True)):
            site.probe.is_well = is_well
            before, asked = site.metrics.fast, site.probe.count
            async with site.client.get(f"{site.url}/health", headers=bearer("nobody")) as reply:
                assert (reply.status, await reply.json()) == (200, {"status": True})
            assert (site.metrics.fast - before, site.probe.count - asked) == (is_fast, not is_fast)
            await site.turn()
        served = site.watcher.served_requests
        assert {(one.status, one.route, one.user_id, one.size) for one in served} == {
            (200, "/health", "", 15)
        }
        assert site.metrics.in_flight == 0
        assert not site.revocation.running()


async def test_a_body_over_the_limit_is_left_to_the_handler() -> None:
    async with opened(body_limit=2000) as site:
        await site.warm()
        assert (await site.ask("x" * 3000))[0] == 413
        assert (await site.ask("x"))[0] == 200


@pytest.mark.parametrize(("text", "count"), [("I am {{USER_NAME}}", 1), ("It is {{CURRENT_TIME}}", 0)])
async def test_a_request_that_changes_with_time_is_left_to_the_handler(text: str, count: int) -> None:
    """The handler would send another request than the fast path, so that the provider would get both."""
    async with opened() as site:
        await site.warm()
        assert (await site.ask(messages=[{"role": "system", "content": text}]))[0] == 200
        await site.turn()
        assert site.metrics.fast == count


async def test_a_failure_of_the_fast_path_leaves_the_request_to_the_handler() -> None:
    async with opened() as site:
        await site.warm()
        assert (await site.ask(credential="broken"))[0] == 200
        await site.turn()
        assert site.metrics.fast == 0
        assert site.metrics.in_flight == 0


async def test_an_answer_that_cannot_be_written_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reply: FastReply, request: object, common: str) -> None:
        raise ValueError("cannot send a header with a line end")

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, found: failures.append(found["exception"]))
    async with opened() as site:
        await site.warm()
        monkeypatch.setattr(FastReply, "send", fail)
        async with asyncio.timeout(SOON):
            with pytest.raises(aiohttp.ClientError):
                await site.ask()
        assert [type(one) for one in failures] == [ValueError]
        assert site.metrics.in_flight == 0
        assert site.watcher.served_requests[-1].status == 500
        assert not site.revocation.running()
