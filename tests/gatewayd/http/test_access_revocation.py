"""Tests for gatewayd.http.access_revocation."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Actor, Role
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.body import json_reply
from gatewayd.http.responses.sse import open_stream
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import make_actor

ACTORS = {"ann": make_actor("ann", Role.USER), "bob": make_actor("bob", Role.USER)}
FRAME = b'data: {"n":1}\n\n'
SOON = 5.0


@dataclass
class Source:
    """Chunks that a test lets go on; it tells what became of the generator."""

    first: bytes = FRAME
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def chunks(self) -> AsyncGenerator[CompletionChunk, None]:
        try:
            self.opened.set()
            yield CompletionChunk(raw=self.first)
            await self.go.wait()
            yield CompletionChunk(raw=FRAME)
        finally:
            self.closed.set()


class Site:
    """Rows that stream and rows that wait, each with its source."""

    def __init__(self) -> None:
        self.shut_out = AccessRevocation()
        self.sources: list[Source] = []
        self.first = FRAME
        self.streams = AnswerStreams(seconds=60)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        source = Source(self.first)
        self.sources.append(source)
        return await self.streams.send(request, source.chunks(), OpenAiFrames(), {})

    async def wait(self, request: web.Request) -> web.StreamResponse:
        source = Source()
        self.sources.append(source)
        source.opened.set()
        try:
            await source.go.wait()
        finally:
            source.closed.set()
        return json_reply({})

    def rows(self) -> Sequence[Route]:
        verified = RouteAccess.VERIFIED
        return [
            Route("GET", "/events", self.stream, verified, "Stream"),
            Route("POST", "/chat", self.stream, verified, "Stream", RouteDialect.OPENAI, interruptible=True),
            Route("POST", "/ask", self.wait, verified, "Wait", RouteDialect.ANTHROPIC, interruptible=True),
            Route("GET", "/ask", self.wait, verified, "Wait"),
            Route("POST", "/write", self.wait, verified, "Write"),
        ]

    def put_out(self, user_id: str | None = "ann") -> None:
        self.shut_out.on_change(AccountChange(user_id, is_out=True))

    async def opened(self, count: int) -> None:
        async with asyncio.timeout(SOON):
            while len(self.sources) < count:
                await asyncio.sleep(0)
            for source in self.sources:
                await source.opened.wait()


@asynccontextmanager
async def site_of() -> AsyncIterator[tuple[Site, Client]]:
    site, before = Site(), asyncio.all_tasks()
    async with serving(site.rows(), ACTORS, shut_out=site.shut_out) as client:
        yield site, client
    left = asyncio.all_tasks() - before
    assert not left, left


async def read_on(reply: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(SOON):
        return await reply.content.readany()


@pytest.mark.parametrize(("method", "path"), [("GET", "/events"), ("POST", "/chat")])
async def test_an_open_stream_is_cut_and_its_source_closed(method: str, path: str) -> None:
    async with site_of() as (site, client):
        reply = await client.request(method, path, headers=bearer("ann"))
        assert await read_on(reply) == FRAME
        site.put_out()
        async with asyncio.timeout(SOON):
            await site.sources[0].closed.wait()
            with pytest.raises(aiohttp.ClientError):
                await reply.read()


async def test_the_streams_of_others_go_on() -> None:
    async with site_of() as (site, client):
        hers = await client.get("/events", headers=bearer("ann"))
        his = await client.get("/events", headers=bearer("bob"))
        await read_on(hers)
        await read_on(his)
        site.put_out()
        async with asyncio.timeout(SOON):
            await site.sources[0].closed.wait()
            site.sources[1].go.set()
            assert await his.read() == FRAME + b"data: [DONE]\n\n"


async def test_all_that_an_account_has_open_ends() -> None:
    async with site_of() as (site, client):
        replies = [await client.get("/events", headers=bearer("ann")) for _ in range(3)]
        for reply in replies:
            await read_on(reply)
        site.put_out()
        async with asyncio.timeout(SOON):
            for source in site.sources:
                await source.closed.wait()
        for reply in replies:
            reply.close()


async def test_a_request_without_an_answer_is_refused_in_its_dialect() -> None:
    async with site_of() as (site, client):
        calls = [
            asyncio.ensure_future(client.request(method, "/ask", headers=bearer("ann")))
            for method in ("POST", "GET")
        ]
        await site.opened(2)
        site.put_out()
        posted, got = [await asyncio.wait_for(call, SOON) for call in calls]
        assert (posted.status, got.status) == (401, 401)
        assert (await posted.json())["error"]["type"] == "authentication_error"
        assert "deactivated" in (await got.json())["detail"]
        assert all(source.closed.is_set() for source in site.sources)
        # The connection serves the next request.
        after = asyncio.ensure_future(client.get("/ask", headers=bearer("bob")))
        await site.opened(3)
        site.sources[2].go.set()
        assert (await asyncio.wait_for(after, SOON)).status == 200


async def test_a_stream_of_which_nothing_was_sent_is_refused_with_a_status() -> None:
    async with site_of() as (site, client):
        site.first = b""
        call = asyncio.ensure_future(client.post("/chat", headers=bearer("ann")))
        await site.opened(1)
        site.put_out()
        reply = await asyncio.wait_for(call, SOON)
        assert reply.status == 401
        assert (await reply.json())["error"]["type"] == "authentication_error"


async def test_a_write_runs_to_its_end() -> None:
    async with site_of() as (site, client):
        call = asyncio.ensure_future(client.post("/write", headers=bearer("ann")))
        await site.opened(1)
        site.put_out()
        site.sources[0].go.set()
        assert (await asyncio.wait_for(call, SOON)).status == 200


@pytest.mark.parametrize(
    "change", [AccountChange("ann"), AccountChange(None), AccountChange("nobody", is_out=True)]
)
async def test_other_changes_end_nothing(change: AccountChange) -> None:
    async with site_of() as (site, client):
        call = asyncio.ensure_future(client.get("/ask", headers=bearer("ann")))
        await site.opened(1)
        site.shut_out.on_change(change)
        site.sources[0].go.set()
        assert (await asyncio.wait_for(call, SOON)).status == 200


async def test_everybody_can_be_put_out_at_once() -> None:
    async with site_of() as (site, client):
        calls = [asyncio.ensure_future(client.get("/ask", headers=bearer(name))) for name in ("ann", "bob")]
        await site.opened(2)
        site.put_out(None)
        assert [(await asyncio.wait_for(call, SOON)).status for call in calls] == [401, 401]


async def test_a_client_that_leaves_is_not_taken_for_one_that_is_put_out() -> None:
    async with site_of() as (site, client):
        call = asyncio.ensure_future(client.get("/ask", headers=bearer("ann")))
        await site.opened(1)
        call.cancel()
        await asyncio.wait([call])
        await asyncio.wait_for(site.sources[0].closed.wait(), SOON)
        site.put_out()
        after = asyncio.ensure_future(client.get("/ask", headers=bearer("ann")))
        await site.opened(2)
        site.sources[1].go.set()
        assert (await asyncio.wait_for(after, SOON)).status == 200


async def waiting(shut_out: AccessRevocation, hold: asyncio.Event) -> str:
    async def work() -> str:
        await hold.wait()
        return "done"

    return await shut_out.run("ann", work())


async def test_being_put_out_twice_counts_once() -> None:
    shut_out, hold = AccessRevocation(), asyncio.Event()
    task = asyncio.ensure_future(waiting(shut_out, hold))
    await asyncio.sleep(0)
    for _ in range(2):
        shut_out.on_change(AccountChange("ann", is_out=True))
    with pytest.raises(GatewayError) as caught:
        await task
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    assert task.cancelling() == 0


async def test_a_client_that_leaves_while_it_is_put_out_has_left() -> None:
    shut_out, hold = AccessRevocation(), asyncio.Event()
    task = asyncio.ensure_future(waiting(shut_out, hold))
    await asyncio.sleep(0)
    shut_out.on_change(AccountChange("ann", is_out=True))
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_who_was_found_before_somebody_was_put_out_is_found_anew() -> None:
    shut_out, found = AccessRevocation(), ["old", "new", "never"]

    async def find() -> str:
        name = found.pop(0)
        if name == "old":
            shut_out.on_change(AccountChange("ann", is_out=True))
        else:
            shut_out.on_change(AccountChange("ann"))
        return name

    assert await shut_out.identify_again(find) == "new"


async def test_who_is_put_out_while_it_is_looked_up_does_not_come_in() -> None:
    class Slow:
        """Reads the account, is told afterwards that it is gone, and knows that the next time."""

        def __init__(self) -> None:
            self.is_active = True

        async def authenticate(self, credential: str, method: str, path: str) -> Actor:
            if not self.is_active:
                raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the credential")
            self.is_active = False
            shut_out.on_change(AccountChange("ann", is_out=True))
            return ACTORS[credential]

    async def handle(request: web.Request) -> web.StreamResponse:
        return json_reply({})

    shut_out = AccessRevocation()
    rows = [Route("GET", "/x", handle, RouteAccess.VERIFIED, "Look")]
    async with serving(rows, authenticator=Slow(), shut_out=shut_out) as client:
        assert (await client.get("/x", headers=bearer("ann"))).status == 401


async def test_a_stream_with_a_head_of_the_library_is_cut_too() -> None:
    opened, closed = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> Any:
        reply = await open_stream(request, {})
        opened.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        return reply

    shut_out = AccessRevocation()
    rows = [Route("GET", "/x", handle, RouteAccess.VERIFIED, "Stream")]
    async with serving(rows, ACTORS, shut_out=shut_out) as client:
        # A connection that closes is answered by the library, which sends the head at once.
        reply = await client.get("/x", headers={**bearer("ann"), "Connection": "close"})
        await asyncio.wait_for(opened.wait(), SOON)
        shut_out.on_change(AccountChange("ann", is_out=True))
        await asyncio.wait_for(closed.wait(), SOON)
        with pytest.raises(aiohttp.ClientError):
            await asyncio.wait_for(reply.read(), SOON)


async def test_only_the_requests_of_ended_sessions_are_cut() -> None:
    shut_out, hold = AccessRevocation(), asyncio.Event()
    tasks = {
        name: asyncio.ensure_future(shut_out.run(user_id, hold.wait(), session_id))
        for name, user_id, session_id in (
            ("one", "ann", "j1"),
            ("two", "ann", "j2"),
            ("key", "ann", None),
            ("bob", "bob", "j1"),
        )
    }
    await asyncio.sleep(0)
    shut_out.on_change(AccountChange("ann", asks_again=True, ended=("j1",)))
    with pytest.raises(GatewayError, match="session was ended"):
        await tasks.pop("one")
    assert not any(task.done() for task in tasks.values())
    shut_out.on_change(AccountChange("ann", asks_again=True, is_signed_out=True))
    with pytest.raises(GatewayError):
        await tasks.pop("two")
    shut_out.on_change(AccountChange("ann", asks_again=True))
    hold.set()
    assert [await task for task in tasks.values()] == [True, True]


async def test_the_accounts_with_running_requests_are_known_with_their_sessions() -> None:
    shut_out, hold = AccessRevocation(), asyncio.Event()

    async def work() -> None:
        await hold.wait()

    running = [
        asyncio.ensure_future(shut_out.run(user_id, work(), session_id))
        for user_id, session_id in (("ann", "s1"), ("ann", "s2"), ("ann", None), ("bob", None))
    ]
    await asyncio.sleep(0)
    assert shut_out.running() == {"ann": {"s1", "s2"}, "bob": set()}
    hold.set()
    await asyncio.gather(*running)
    assert shut_out.running() == {}
