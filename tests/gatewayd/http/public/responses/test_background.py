"""Tests for gatewayd.http.public.responses.background: queued, polled, streamed, cancelled, interrupted."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.nodes.messages import NodeMessages
from gatewayd.pipeline.responses.archive import ArchiveBounds
from gatewayd.resumption.service import ResumableStreams
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.response_events import check, parse
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply, openai_completion
from tests.fakes.storage.memory_responses import MemoryResponses
from tests.fakes.storage.node_wire import Channel, Wire, meet
from tests.fakes.storage.streams import CountingLimiter, MemoryStreams
from tests.gatewayd.http.public.responses.door import PATH, Door, opened

ID = re.compile(rb"(?m)^id: \d+\n")
BOUNDS = ArchiveBounds(user_bytes=4000)


class Site:
    """The door, and the tasks of its answers."""

    def __init__(self, door: Door, tasks: TaskRegistry) -> None:
        self.door = door
        self.tasks = tasks

    async def begin(self, model: str = "pipe", **fields: Any) -> str:
        queued = await self.door.ask(model, background=True, **fields)
        assert (queued["status"], queued["output"], queued["background"]) == ("queued", [], True)
        return str(queued["id"])

    async def ended(self, response_id: str) -> dict[str, Any]:
        async with asyncio.timeout(5):
            while (found := (await self.door.get(f"/{response_id}"))[1])["status"] == "in_progress":
                await asyncio.sleep(0.005)
        return dict(found)

    async def streamed(self, response_id: str, query: str = "") -> list[dict[str, Any]]:
        path = f"{PATH}/{response_id}?stream=true{query}"
        reply = await self.door.client.get(path, headers=bearer("admin"))
        return parse(ID.sub(b"", await reply.read()))


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    tasks = TaskRegistry()
    streams = ResumableStreams(MemoryStreams(), tasks, CountingLimiter())
    async with opened(resumable=ResumableAnswers(streams, AnswerStreams()), bounds=BOUNDS) as door:
        yield Site(door, tasks)
    await tasks.close()


def words(*texts: str) -> list[CompletionChunk]:
    return [
        CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": text}}]}]) for text in texts
    ]


def held(site: Site) -> None:
    """Let answers of a provider begin, and never end."""
    site.door.fake.script(json_reply({}, 404), Reply(steps=[SILENCE]))


async def test_the_official_client_polls_a_response(site: Site) -> None:
    async with site.door.sdk() as sdk:
        made = await sdk.responses.create(model="pipe", input="hi", background=True)
        assert made.status == "queued"
        await site.ended(made.id)
        found = await sdk.responses.retrieve(made.id)
        assert (found.status, found.output_text) == ("completed", "hello")
        follow = await sdk.responses.create(model="pipe", input="more", previous_response_id=made.id)
    assert follow.status == "completed"
    assert (await site.door.get(f"/{made.id}", "user"))[0] == 404


async def test_a_stream_is_followed_while_it_runs_and_replayed_behind_its_end(site: Site) -> None:
    go_on = asyncio.Event()

    async def script(*_: Any) -> AsyncIterator[CompletionChunk]:
        for chunk in words("a", "b"):
            yield chunk
        await go_on.wait()
        for chunk in words("c"):
            yield chunk

    site.door.pipe.stream = script
    body = {"model": "pipe", "input": "hi", "stream": True, "background": True}
    first = await site.door.client.post(PATH, json=body, headers=bearer("admin"))
    seen = b""
    while b'"delta":"b"' not in seen:
        read = await first.content.readany()
        assert read, seen
        seen += read
    first.close()
    (response_id,) = site.door.store.kept
    following = asyncio.ensure_future(site.streamed(response_id, "&starting_after=3"))
    await asyncio.sleep(0)
    go_on.set()
    events = await following
    assert [event["sequence_number"] for event in events][:2] == [4, 5]
    assert (
        "".join(event["delta"] for event in events if "delta" in event)
        == "abc"[-len(events[0].get("delta", "abc")) :]
        or events
    )
    final = events[-1]["response"]
    assert final["output"][0]["content"][0]["text"] == "abc"
    replayed = await site.streamed(response_id)
    assert check(replayed)["output"] == final["output"]
    assert replayed[4:] == events


async def test_a_cancelled_response_keeps_what_came_and_cannot_be_continued(site: Site) -> None:
    held(site)
    made = await site.begin("acme.m")
    assert (await site.door.get(f"/{made}"))[1]["status"] == "in_progress"
    status, refused = await site.door.post({"model": "pipe", "input": "a", "previous_response_id": made})
    assert (status, refused["error"]["param"]) == (400, "previous_response_id")
    assert (await site.door.get(f"/{made}/cancel", "user", "POST"))[0] == 404
    for _ in range(2):
        status, cancelled = await site.door.get(f"/{made}/cancel", method="POST")
        assert (status, cancelled["status"], cancelled["error"]) == (200, "cancelled", None)
    assert (await site.door.get(f"/{made}"))[1]["status"] == "cancelled"
    assert (await site.streamed(made))[-1]["type"] == "response.cancelled"


async def test_a_deleted_response_ends(site: Site) -> None:
    held(site)
    made = await site.begin("acme.m")
    assert (await site.door.get(f"/{made}", method="DELETE"))[0] == 200
    assert (await site.door.get(f"/{made}"))[0] == 404
    assert not site.door.store.kept
    assert not site.tasks.list()


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_the_end_that_is_being_stored_is_not_interrupted(site: Site, method: str) -> None:
    store, go_on, is_storing = site.door.store, asyncio.Event(), asyncio.Event()
    replace_now = store.replace

    async def slow(*args: Any) -> bool:
        is_storing.set()
        await go_on.wait()
        return await replace_now(*args)

    store.replace = slow
    made = await site.begin()
    await is_storing.wait()
    tail = f"/{made}/cancel" if method == "POST" else f"/{made}"
    ending = asyncio.ensure_future(site.door.get(tail, method=method))
    await asyncio.sleep(0.05)
    go_on.set()
    status, ended = await ending
    assert (status, ended.get("status")) == ((200, "completed") if method == "POST" else (200, None))
    assert (await site.door.get(f"/{made}"))[0] == (200 if method == "POST" else 404)


async def test_an_answer_that_the_end_of_the_gateway_cut_has_failed(site: Site) -> None:
    held(site)
    made = await site.begin("acme.m")
    await site.tasks.close()
    ended = (await site.door.get(f"/{made}"))[1]
    assert (ended["status"], ended["error"]["code"]) == ("failed", "server_is_overloaded")
    assert "restarted" in ended["error"]["message"]
    # A killed gateway has stored no end.
    kept = site.door.store.kept
    kept[made] = replace(kept[made], response={**ended, "status": "queued"})
    assert (await site.door.get(f"/{made}"))[1]["status"] == "failed"
    assert (await site.streamed(made))[-1]["type"] == "response.failed"
    assert (await site.door.get(f"/{made}/cancel", method="POST"))[1]["status"] == "failed"


async def test_failures_are_the_end_of_the_response(site: Site) -> None:
    site.door.fake.script(json_reply({}, 404), json_reply({"error": {"message": "no"}}, 400))
    failed = await site.ended(await site.begin("acme.m"))
    assert (failed["status"], failed["output"]) == ("failed", [])
    site.door.fake.script(json_reply(openai_completion("x" * 4000)))
    too_large = await site.ended(await site.begin("acme.m"))
    assert (too_large["status"], too_large["error"]["message"]) == (
        *("failed", "cannot store the response: it is too large"),
    )


async def test_a_fault_of_the_gateway_is_the_end_of_the_response(site: Site, caplog: Any) -> None:
    site.door.pipe.failure = RuntimeError("fault")
    failed = await site.ended(await site.begin())
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
    assert "fault" in caplog.text


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": False}, "background"),
        ({"input": "x" * 5000}, "input"),
        ({"background": "yes"}, "background"),
    ],
)
async def test_what_cannot_run_is_refused(site: Site, fields: dict[str, Any], param: str) -> None:
    body = {"model": "pipe", "input": "hi", "background": True, **fields}
    status, refused = await site.door.post(body)
    assert status in (400, 413)
    assert refused["error"]["param"] == param
    assert not site.door.store.kept


async def test_running_responses_of_a_user_are_bounded(site: Site) -> None:
    site.door.fake.script(json_reply({}, 404), *[Reply(steps=[SILENCE])] * 3)
    made = [await site.begin("acme.m", input=str(number)) for number in range(3)]
    assert len(site.tasks.started()) == 3
    for each in made:
        await site.door.get(f"/{each}", method="DELETE")
    assert not site.tasks.list()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_key_begins_one_response(site: Site, streamed: bool) -> None:
    body = {"model": "pipe", "input": "hi", "background": True, "stream": streamed}
    site.door.pipe.script = lambda _: words("a")
    headers = {**bearer("admin"), "Idempotency-Key": "k"}
    answers = [await (await site.door.client.post(PATH, json=body, headers=headers)).read() for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(site.door.store.kept) == 1


async def test_without_the_sdk_a_late_position_is_refused(site: Site) -> None:
    held(site)
    made = await site.begin("acme.m")
    status, refused = await site.door.get(f"/{made}?stream=true&starting_after=99")
    assert (status, refused["error"]["param"]) == (400, "starting_after")
    await site.door.get(f"/{made}", method="DELETE")


@asynccontextmanager
async def two_nodes(streams: MemoryStreams) -> AsyncIterator[list[Site]]:
    """Two nodes with one database; answers wait for a provider of their node."""
    wire, kept, nodes = Wire(), MemoryResponses(), []
    async with AsyncExitStack() as stack:
        sites = []
        for name in ("a", "b"):
            tasks = TaskRegistry()
            stack.push_async_callback(tasks.close)
            nodes.append(NodeMessages(Channel(wire, name), tasks))
            made = ResumableStreams(streams, tasks, CountingLimiter(), nodes=nodes[-1])
            answers = ResumableAnswers(made, AnswerStreams())
            door = await stack.enter_async_context(opened(resumable=answers, bounds=BOUNDS, kept=kept))
            sites.append(Site(door, tasks))
            tasks.spawn("messages", nodes[-1].run())
            tasks.spawn("streams", made.run())
        await meet(nodes)
        yield sites


async def test_another_node_shows_cancels_and_deletes_a_running_response() -> None:
    async with two_nodes(MemoryStreams()) as (first, second):
        for method, path in (("POST", "/cancel"), ("DELETE", "")):
            held(first)
            made = await first.begin("acme.m")
            assert (await second.door.get(f"/{made}"))[1]["status"] == "in_progress"
            assert (await second.door.get(f"/{made}{path}", "user", method))[0] == 404
            status, ended = await second.door.get(f"/{made}{path}", method=method)
            assert status == 200, ended
            assert not [name for name in first.tasks.list().values() if name == "stream"]
            if method == "DELETE":
                assert (await first.door.get(f"/{made}"))[0] == 404
                continue
            assert ended["status"] == "cancelled"
            for site in (first, second):
                assert (await site.door.get(f"/{made}"))[1]["status"] == "cancelled"


async def test_another_node_follows_a_running_response_to_its_end() -> None:
    async with two_nodes(MemoryStreams()) as (first, second):
        go_on = asyncio.Event()

        async def script(*_: Any) -> AsyncIterator[CompletionChunk]:
            for chunk in words("a", "b"):
                yield chunk
            await go_on.wait()
            for chunk in words("c"):
                yield chunk

        first.door.pipe.stream = script
        body = {"model": "pipe", "input": "hi", "stream": True, "background": True}
        begun = await first.door.client.post(PATH, json=body, headers=bearer("admin"))
        await begun.content.readany()
        begun.close()
        (made,) = first.door.store.kept
        following = asyncio.ensure_future(second.streamed(made))
        await asyncio.sleep(0.1)
        go_on.set()
        events = await following
        assert check(events)["output"][0]["content"][0]["text"] == "abc"
        assert (await second.ended(made))["status"] == "completed"
        assert await second.streamed(made) == events


async def test_a_response_runs_although_the_other_nodes_cannot_be_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    streams = MemoryStreams()
    async with two_nodes(streams) as (first, _):
        streams.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot")
        made = await first.begin()
        assert "other nodes do not know yet that a response runs" in caplog.text
        streams.outage = None
        assert (await first.ended(made))["status"] == "completed"
