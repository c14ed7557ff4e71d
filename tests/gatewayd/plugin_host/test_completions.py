"""Tests for gatewayd.plugin_host.completions."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Actor, Role, UserChange
from gatewayd.catalog.records import Model
from gatewayd.completions.records import DONE, Body, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.pipeline import NoFilterChain, NoFilters
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugin_host.completions import AnswerFrames
from gatewayd.plugins.runtime.call_depth import MAX_DEPTH, current_depth
from gatewayd.plugins.runtime.context import CallScope, RequestFacts
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.host_services import Hosting, Wishes, hosting
from tests.fakes.plugins.memory import plugin_of
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.chats_site import document

ASKING: list[Body] = [{"role": "user", "content": "hi"}]

LOOP = """
    from open_webui.utils.chat import generate_chat_completion

    class Pipe:
        calls = 0

        async def pipe(self, body, __user__, __request__):
            Pipe.calls += 1
            form = {"model": "loop", "messages": body["messages"], "stream": body["stream"]}
            answer = await generate_chat_completion(__request__, form, __user__)
            if body["stream"]:
                return "".join([str(part) async for part in answer.body_iterator])
            return answer["choices"][0]["message"]["content"]
"""

SPEAKER = """
    class Pipe:
        async def pipe(self, body, __event_emitter__, __task__, __metadata__):
            await __event_emitter__({"type": "status", "data": {"description": "working"}})
            return f"{__task__} {__metadata__['model_id']} {__metadata__['own']}"
"""


class Shouting:
    """A filter that adds a message, and an attachment that adds one, too."""

    inlets: tuple[Any, ...]

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
        return NoFilterChain(inlets=(self,))  # type: ignore[arg-type]

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        request.body["messages"] = [*request.body["messages"], {"role": "user", "content": "FILTERED"}]

    async def attach(
        self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        return [{"source": {"name": "doc"}, "document": ["text"], "metadata": [{"source": "doc"}]}]


def scope_of(actor: Actor, **fields: Any) -> CallScope:
    return CallScope(actor, EventTarget(actor.user_id, "c1", "m1", "s1"), **fields)


async def ask(made: Hosting, *, whole: bool = False, user: str = "", **body: Any) -> Any:
    form = {"model": "small", "messages": ASKING, **body}
    return await made.host.completions.run(user or made.ann.id, form, whole_pipeline=whole, scope=None)


def chunk(text: str) -> CompletionChunk:
    return CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": text}}]}])


def text_of(frames: Sequence[bytes]) -> str:
    assert frames[-1] == DONE
    events = [orjson.loads(line[6:]) for frame in frames[:-1] for line in frame.split(b"\n\n") if line]
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


async def test_a_model_is_asked_directly_with_its_record_alone(tmp_path: Path) -> None:
    shouting = Shouting()
    async with hosting(tmp_path, Wishes(filters=shouting, attachments=shouting)) as made:
        files = [{"type": "file", "id": "f1"}]
        answer = await ask(made, files=files, metadata={"chat_id": "c1"}, temperature=0.5)
        assert answer["choices"][0]["message"]["content"] == "hello"
        (asked,) = made.source.asked
        assert asked == {"model": "up-small", "messages": ASKING, "temperature": 0.5, "top_k": 3}


async def test_request_within_a_call_meets_the_filters_that_the_call_has_not_met(tmp_path: Path) -> None:
    chosen: list[set[str]] = []

    class Choosing(NoFilters):
        async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
            assert request.scope is not None
            chosen.append(set(request.scope.filtered))
            return NoFilterChain()

    async with hosting(tmp_path, Wishes(filters=Choosing())) as made:
        form = {"model": "small", "messages": ASKING}
        scope = scope_of(make_actor(made.ann.id, Role.USER), filtered={"met"})
        await made.host.completions.run(made.ann.id, form, whole_pipeline=False, scope=scope)
        assert chosen == [{"met"}]
        assert scope.filtered == {"met"}
        await ask(made)
        assert chosen == [{"met"}]


async def test_the_whole_pipeline(tmp_path: Path) -> None:
    shouting = Shouting()
    async with hosting(tmp_path, Wishes(filters=shouting, attachments=shouting)) as made:
        answer = await ask(made, whole=True, files=[{"type": "file", "id": "f1"}])
        assert made.source.asked[0]["messages"][-1]["content"] == "FILTERED"
        assert answer["sources"][0]["source"]["name"] == "doc"
        made.source.script = lambda _: [chunk("a"), chunk("b")]
        frames = [
            frame
            async for frame in await ask(made, whole=True, files=[{"type": "file", "id": "f1"}], stream=True)
        ]
        assert orjson.loads(frames[0][6:])["sources"][0]["source"]["name"] == "doc"
        assert text_of(frames) == "ab"


async def test_streams(made: Hosting) -> None:
    made.source.script = lambda _: [chunk("a"), chunk("b")]
    assert text_of([frame async for frame in await ask(made, stream=True)]) == "ab"
    assert made.source.closed_streams == 1


async def test_a_stream_that_is_left_releases_its_source(made: Hosting) -> None:
    made.source.script = lambda _: [chunk("a"), chunk("b")]
    frames = await ask(made, stream=True)
    assert isinstance(frames, AnswerFrames)
    assert b"a" in await anext(frames)
    await frames.aclose()
    assert made.source.closed_streams == 1
    with pytest.raises(StopAsyncIteration):
        await anext(frames)


async def test_a_stream_that_breaks_raises(made: Hosting) -> None:
    broken = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")
    made.source.script = lambda _: [chunk("a"), broken]
    frames = await ask(made, stream=True)
    await anext(frames)
    with pytest.raises(GatewayError, match="cannot go on"):
        await anext(frames)
    made.source.script = lambda _: [broken]
    with pytest.raises(GatewayError, match="cannot go on"):
        await ask(made, stream=True)


async def test_an_answer_that_came_whole_is_streamed_too(tmp_path: Path) -> None:
    pipe = plugin_of("echo", "class Pipe:\n    def pipe(self, body):\n        return 'said'\n")
    async with hosting(tmp_path, Wishes([pipe])) as made:
        frames = await ask(made, model="echo", user=made.admin.id, stream=True)
        assert text_of([frame async for frame in frames]) == "said"


async def test_the_right_to_use_a_model_is_checked(made: Hosting) -> None:
    for whole in (True, False):
        with pytest.raises(GatewayError) as refused:
            await ask(made, model="dear", whole=whole)
        assert refused.value.kind is ErrorKind.NOT_FOUND
        assert await ask(made, model="dear", whole=whole, user=made.admin.id)
    with pytest.raises(GatewayError) as unknown:
        await ask(made, user="nobody")
    assert unknown.value.kind is ErrorKind.NOT_FOUND
    await made.documents.accounts.users.change(made.ann.id, UserChange(active=False), None)
    with pytest.raises(GatewayError) as inactive:
        await ask(made)
    assert inactive.value.kind is ErrorKind.FORBIDDEN


async def test_a_request_is_read_as_those_of_clients_are(made: Hosting) -> None:
    with pytest.raises(GatewayError) as refused:
        await ask(made, messages=[{"role": "nobody", "content": "x"}])
    assert refused.value.param == "messages[0].role"


async def test_the_chat_of_somebody_else(made: Hosting) -> None:
    chat = await made.host.chats.create(made.admin.id, document())
    for whole in (True, False):
        with pytest.raises(GatewayError) as refused:
            await ask(made, whole=whole, chat_id=chat["id"])
        assert refused.value.kind is ErrorKind.NOT_FOUND
    assert await ask(made, user=made.admin.id, chat_id=chat["id"])
    assert await ask(made, chat_id="local:1")


async def test_who_asks_in_a_call_is_its_actor(made: Hosting) -> None:
    # An operator of the control socket has no account.
    operator = make_actor("control:root")
    scope = scope_of(operator, facts=RequestFacts(path="/x"))
    form = {"model": "dear", "messages": ASKING}
    assert await made.host.completions.run("control:root", form, whole_pipeline=True, scope=scope)
    assert made.source.contexts[-1].user_id == "control:root"
    with pytest.raises(GatewayError):
        await made.host.completions.run("control:ann", form, whole_pipeline=True, scope=scope)


async def test_a_pipe_speaks_to_the_chat_of_the_call(tmp_path: Path) -> None:
    async with hosting(tmp_path, Wishes([plugin_of("speaker", SPEAKER)])) as made:
        actor = await made.actors.verified(made.admin.id)
        form = {"model": "speaker", "messages": ASKING, "metadata": {"task": "title_generation"}}
        scope = scope_of(actor, metadata={"own": 1, "model_id": "outer"})
        run = made.host.completions.run
        answer: Any = await run(actor.user_id, form, whole_pipeline=False, scope=scope)
        assert answer["choices"][0]["message"]["content"] == "title_generation speaker 1"
        (told,) = made.events.emitted
        assert told[0] == EventTarget(actor.user_id, "c1", "m1", "s1")
        assert scope.metadata == {"own": 1, "model_id": "outer"}


@pytest.mark.parametrize("stream", [False, True])
async def test_plugins_that_ask_each_other_without_end(tmp_path: Path, stream: bool) -> None:
    async with hosting(tmp_path, Wishes([plugin_of("loop", LOOP)], has_names=True)) as made:
        with pytest.raises(PluginError, match=f"more than {MAX_DEPTH} levels deep"):
            await ask(made, model="loop", user=made.admin.id, stream=stream)
        loaded = await made.plugged.registry.loaded(made.plugged.store.rows.popitem()[1].family, "loop")
        assert loaded.value("calls") == MAX_DEPTH
        assert current_depth.get() == 0


async def test_threads_of_plugins_own_are_as_deep_as_their_call(made: Hosting) -> None:
    # Nothing follows into such a thread but the request that the plugin was given.
    actor = await made.actors.verified(made.admin.id)
    form = {"model": "dear", "messages": ASKING}
    run = made.host.completions.run
    await run(actor.user_id, form, whole_pipeline=True, scope=scope_of(actor, level=MAX_DEPTH - 1))
    with pytest.raises(GatewayError, match="more than"):
        await run(actor.user_id, form, whole_pipeline=True, scope=scope_of(actor, level=MAX_DEPTH))


async def test_a_stream_asks_at_the_level_of_its_request(made: Hosting) -> None:
    levels = []

    async def source() -> AsyncIterator[CompletionChunk]:
        for text in ("a", "b"):
            levels.append(current_depth.get())
            yield chunk(text)

    frames = [frame async for frame in AnswerFrames([b"first"], source(), 3)]  # type: ignore[arg-type]
    assert (frames[0], text_of(frames[1:])) == (b"first", "ab")
    assert levels == [3, 3]
    assert current_depth.get() == 0


async def test_vectors(made: Hosting) -> None:
    embed = made.host.completions.embed
    heron, again, stork = await embed(["a heron", "a heron", "some stork"])
    assert heron == again
    assert heron != stork
    assert sum(number * number for number in heron) == pytest.approx(1.0, abs=1e-5)
    assert await embed([]) == []
