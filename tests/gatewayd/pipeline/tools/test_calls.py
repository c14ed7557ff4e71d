"""Tests for gatewayd.pipeline.tools.calls."""

import asyncio
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.tools.calls import OfferedTool, ToolCalls, ToolEffects, source_of
from gatewayd.plugins.tool_results import ResultMedia
from tests.fakes.providers.tool_calls import (
    FakeEvents,
    FakeTool,
    make_call,
    make_runner,
    make_scope,
    make_spec,
)


async def echo(**arguments: Any) -> Any:
    return arguments.get("value")


def tool(name: str = "echo", do: Any = echo, **properties: Any) -> FakeTool:
    return FakeTool(make_spec(name, **(properties or {"value": {}})), do)


async def test_a_call_gets_its_arguments_and_gives_its_result() -> None:
    kit, events = tool(), FakeEvents()
    scope = make_scope()
    steps = await make_runner(kit, scope=scope, events=events).run(
        [make_call("echo", {"value": "hi", "other": 1})], [{"role": "user", "content": "x"}]
    )
    assert kit.called == [{"value": "hi"}]
    assert kit.scopes[0].messages == [{"role": "user", "content": "x"}]
    assert [(step.id, step.name, step.result) for step in steps] == [("call_1", "echo", "hi")]
    assert events.sent == [(scope.target, {"type": "source", "data": steps[0].sources[0]})]
    assert steps[0].sources[0] == {
        "source": {"name": "kit/echo"},
        "document": ["hi"],
        "metadata": [{"source": "kit/echo", "parameters": {"value": "hi", "other": 1}}],
        "tool_result": True,
    }


async def test_calls_of_one_round_run_at_the_same_time_and_results_keep_their_order() -> None:
    both = asyncio.Barrier(2)

    async def meet(value: int) -> str:
        await both.wait()
        if value == 1:
            await asyncio.sleep(0)
        return str(value)

    runner = make_runner(tool(do=meet))
    async with asyncio.timeout(5):
        steps = await runner.run([make_call("echo", {"value": n}, f"call_{n}") for n in (1, 2)], [])
    assert [(step.id, step.result) for step in steps] == [("call_1", "1"), ("call_2", "2")]


async def test_what_goes_wrong_in_a_call_is_its_result() -> None:
    async def fail(value: Any) -> None:
        raise GatewayError(ErrorKind.PLUGIN_FAILED, "no such city")

    kit = tool(do=fail)
    steps = await make_runner(kit).run(
        [make_call("echo", {"value": 1}), make_call("what"), make_call("echo", "not json")], []
    )
    assert [step.result for step in steps] == [
        "no such city",
        'Error: Tool "what" not found.',
        "cannot call echo: its arguments are not a JSON object",
    ]
    assert steps[1].sources == ()


async def test_an_object_that_cannot_be_written_is_told() -> None:
    class Odd:
        def __str__(self) -> str:
            raise ZeroDivisionError

    async def odd(value: Any) -> Any:
        return {"in": Odd()} if value else Odd()

    steps = await make_runner(tool(do=odd)).run(
        [make_call("echo", {"value": 0}), make_call("echo", {"value": 1})], []
    )
    assert {step.result for step in steps} == {"Error: cannot read the result of echo: ZeroDivisionError"}


async def test_without_citation_there_is_no_source() -> None:
    events = FakeEvents()
    steps = await make_runner(tool(), events=events, is_cited=False).run(
        [make_call("echo", {"value": "x"})], []
    )
    assert steps[0].sources == ()
    assert events.sent == []


class HTMLResponse:
    body = b"<b>"
    headers = {"content-disposition": "inline"}  # noqa: RUF012
    status_code = 200


async def test_pages_and_images_go_to_the_message() -> None:
    async def draw(value: str) -> Any:
        return HTMLResponse() if value == "page" else "data:image/png;base64,eA=="

    kept: list[tuple[str, ResultMedia]] = []

    async def keep(actor: Actor, item: ResultMedia) -> dict[str, Any]:
        kept.append((actor.user_id, item))
        return {"type": item.type, "url": "/f1"}

    events = FakeEvents()
    kit = tool(do=draw)
    runner = ToolCalls({"echo": OfferedTool("echo", kit)}, make_scope(), ToolEffects(events, keep))
    steps = await runner.run([make_call("echo", {"value": v}, v) for v in ("page", "image")], [])
    assert kept == [("u1", ResultMedia("image", b"x", "image/png"))]
    assert [event["type"] for event in events.events] == ["embeds", "source", "files", "source"]
    assert events.events[0]["data"] == {"embeds": ["<b>"]}
    assert events.events[2]["data"] == {"files": [{"type": "image", "url": "/f1"}]}
    assert (steps[0].embeds, steps[1].files) == (("<b>",), ({"type": "image", "url": "/f1"},))


async def test_an_image_that_cannot_be_kept_is_told() -> None:
    async def draw() -> str:
        return "data:image/png;base64,eA=="

    steps = await make_runner(tool(do=draw)).run([make_call("echo")], [])
    assert steps[0].files == ()
    assert steps[0].result.endswith(
        "The image of this result cannot be stored: this gateway stores no files."
    )


async def test_cancelling_stops_all_tools() -> None:
    started, stopped = asyncio.Barrier(3), []

    async def hang(value: int) -> None:
        try:
            await started.wait()
            await asyncio.Event().wait()
        finally:
            stopped.append(value)

    async def run() -> None:
        await make_runner(tool(do=hang)).run([make_call("echo", {"value": n}) for n in (1, 2)], [])

    task = asyncio.ensure_future(run())
    async with asyncio.timeout(5):
        await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(stopped) == [1, 2]


def test_the_source_of_a_tool_that_is_not_cited_has_no_name() -> None:
    source = source_of(OfferedTool("echo", tool(), is_cited=False), "{}", "x")
    assert source["source"] == {}
    assert source["document"] == ["x"]
