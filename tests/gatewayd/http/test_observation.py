"""Observation of requests."""

import asyncio
from typing import Any

from aiohttp import ClientError, web

from gatewayd.accounts.records import Role
from gatewayd.http.observation import ObservedRequest, RequestObservation
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes, ServedRequest
from gatewayd.observe.metrics.requests import RequestMetrics
from tests.fakes.http.public_app import bearer, raw_get, serving
from tests.fakes.providers.models import make_actor


class Watcher:
    """Remembers what it saw."""

    def __init__(self) -> None:
        self.is_on = True
        self.seen: list[ServedRequest] = []
        self.parents: list[str | None] = []

    def begun(self, notes: RequestNotes, request: ObservedRequest) -> None:
        self.parents.append(request.headers.get("traceparent"))

    def served(self, served: ServedRequest) -> None:
        self.seen.append(served)


async def echo(request: web.Request) -> web.StreamResponse:
    notes = CURRENT_NOTES.get()
    return web.Response(text="noted" if notes else "plain")


async def stream(request: web.Request) -> web.StreamResponse:
    reply = web.StreamResponse()
    await reply.prepare(request)
    await reply.write(b"x" * 1000)
    await reply.write_eof()
    return reply


async def wait(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    raise AssertionError


async def fail(request: web.Request) -> web.StreamResponse:
    raise RuntimeError("broken")


ROWS = [
    Route("GET", "/things/{id}", echo, RouteAccess.VERIFIED, "Show"),
    Route("GET", "/stream", stream, RouteAccess.PUBLIC, "Stream"),
    Route("GET", "/wait", wait, RouteAccess.PUBLIC, "Wait"),
    Route("POST", "/fail", fail, RouteAccess.PUBLIC, "Fail", interruptible=True),
]


def counted(metrics: RequestMetrics) -> dict[tuple[str, ...], float]:
    return {labels: cell.value for labels, cell in metrics.requests.items() if cell.value}


async def test_every_request_counts_by_its_template() -> None:
    metrics = RequestMetrics()
    before = len(metrics.requests)
    actors = {"u": make_actor()}
    async with serving(ROWS, actors, observation=RequestObservation(metrics)) as client:
        known = len(metrics.requests)
        assert (await client.get("/things/1", headers=bearer("u"))).status == 200
        assert await (await client.get("/things/2/", headers=bearer("u"))).text() == "plain"
        assert (await client.head("/things/3", headers=bearer("u"))).status == 200
        assert (await client.get("/things/4")).status == 401
        assert (await client.post("/fail", json={})).status == 500
        for path in ("/nothing", "/nothing/%2e%2e/x", "/a?b=c"):
            await raw_get(client, path)
        for method in ("PROPFIND", "LOCK", "PURGE"):
            await client.request(method, "/things/1")
        assert (await client.put("/things/1")).status == 405
        assert len(metrics.requests) == known > before
        assert metrics.in_flight == 0
    assert counted(metrics) == {
        ("/things/{id}", "GET", "2xx"): 2,
        ("/things/{id}", "HEAD", "2xx"): 1,
        ("/things/{id}", "GET", "4xx"): 1,
        ("/fail", "POST", "5xx"): 1,
        ("-", "GET", "4xx"): 3,
        ("-", "other", "4xx"): 3,
        ("-", "PUT", "4xx"): 1,
    }


async def test_a_client_that_leaves_is_counted_once() -> None:
    metrics = RequestMetrics()
    async with serving(ROWS, observation=RequestObservation(metrics)) as client:
        asking = asyncio.get_running_loop().create_task(_ask(client, "/wait"))
        while not metrics.in_flight:
            await asyncio.sleep(0)
        asking.cancel()
        while metrics.in_flight:
            await asyncio.sleep(0)
    assert counted(metrics) == {("/wait", "GET", "4xx"): 1}


async def _ask(client: Any, path: str) -> None:
    try:
        await client.get(path)
    except (ClientError, asyncio.CancelledError):
        return


async def test_watchers_get_the_facts_of_a_request() -> None:
    watcher, actor = Watcher(), make_actor(role=Role.USER)
    observation = RequestObservation(RequestMetrics(), (watcher,))
    async with serving(ROWS, {"u": actor}, observation=observation) as client:
        traced = {**bearer("u"), "X-Request-Id": "r-1", "traceparent": "00-1-2-01"}
        assert await (await client.get("/things/1?key=secret", headers=traced)).text() == "noted"
        assert (await client.get("/stream")).status == 200
        watcher.is_on = False
        assert await (await client.get("/things/1", headers=bearer("u"))).text() == "plain"
    first, second = watcher.seen
    assert (first.request_id, first.client, first.method, first.route) == (
        "r-1",
        "127.0.0.1",
        "GET",
        "/things/{id}",
    )
    assert (first.status, first.size, first.user_id, first.email) == (200, 5, actor.user.id, actor.user.email)
    assert first.seconds > 0
    assert second.size > 1000
    assert (second.user_id, second.key) == ("", "")
    assert watcher.parents == ["00-1-2-01", None]
    assert CURRENT_NOTES.get() is None
