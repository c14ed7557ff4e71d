import asyncio
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.isolation.calls import CallActor
from gatewayd.plugins.isolation.host_proxy import HostCallClient, RemoteEvents, make_remote_host
from gatewayd.plugins.isolation.messages import (
    PipeData,
    pack_at_once,
    render_error,
    render_exception,
    unpack_at_once,
)
from tests.fakes.plugins.memory import actor_of, scope_of


class Gateway:
    """Answers questions with what is given, and keeps them."""

    def __init__(self, *answers: PipeData | Exception) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[dict[str, Any], PipeData]] = []
        self.client = HostCallClient(self.say)
        self.host: PluginHost = make_remote_host(self.client, "/data", "secret")

    def say(self, header: dict[str, Any], blob: bytes) -> None:
        self.heard.append((header, unpack_at_once(header, blob)))
        if "ask" not in header or not self.answers:
            return
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            told = render_error(answer) if isinstance(answer, GatewayError) else render_exception(answer)
            self.client.take({"ask": header["ask"], **(told or {})}, b"")
        else:
            more, data = pack_at_once(answer)
            self.client.take({"ask": header["ask"], **more}, data)


def call_scope() -> Any:
    actor = actor_of()
    known = CallActor(actor.user, actor.kind, (), {}, call=7)
    return scope_of(known)


async def test_a_method_asks_with_its_arguments_by_name() -> None:
    gateway = Gateway(PipeData({"id": "u"}))
    assert await gateway.host.users.find("u") == {"id": "u"}
    header, payload = gateway.heard[0]
    assert (header["part"], header["method"], header["call"]) == ("users", "find", 0)
    assert payload.value == {"user_id": "u"}
    assert (gateway.host.data_dir, gateway.host.secret_key) == (Path("/data"), "secret")


async def test_an_error_of_the_gateway_is_raised() -> None:
    gateway = Gateway(GatewayError(ErrorKind.FORBIDDEN, "cannot do it", param="p"))
    with pytest.raises(GatewayError, match="cannot do it") as caught:
        await gateway.host.users.find("u")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.FORBIDDEN, "p")


@pytest.mark.parametrize("error", [TimeoutError("nobody"), RuntimeError("it failed"), KeyError("k")])
async def test_an_exception_that_plugins_know_is_raised(error: Exception) -> None:
    gateway = Gateway(error)
    with pytest.raises((TimeoutError, RuntimeError, LookupError), match=r"nobody|it failed|k"):
        await RemoteEvents(gateway.client).call(EventTarget("u"), {})


async def test_an_upload_has_its_content_beside_it() -> None:
    gateway = Gateway(PipeData({"id": "f"}))
    assert await gateway.host.files.store("u", HostUpload("a", b"\xff")) == {"id": "f"}
    payload = gateway.heard[0][1]
    assert payload.attachment == b"\xff"
    assert payload.value["upload"]["name"] == "a"
    assert "content" not in payload.value["upload"]


async def test_a_path_is_a_path() -> None:
    gateway = Gateway(PipeData("/x"), PipeData(None))
    assert await gateway.host.files.path("f") == Path("/x")
    assert await gateway.host.files.path("f") is None


async def test_an_answer_of_a_model_is_pulled() -> None:
    over = PipeData({"is_over": True})
    gateway = Gateway(PipeData({"frames": 3}), PipeData({"is_over": False}, b"one"), over)
    answer: Any = await gateway.host.completions.run("u", {}, whole_pipeline=False, scope=call_scope())
    assert gateway.heard[0][0]["call"] == 7
    assert [frame async for frame in answer] == [b"one"]
    await answer.aclose()
    assert [header["do"] for header, _ in gateway.heard] == ["host", "frame", "frame"]


async def test_tools_are_run_by_the_gateway() -> None:
    result = PipeData({"is": "value", "value": 5})
    gateway = Gateway(PipeData({"t": {"callable": 2, "spec": {}}}), result)
    tools = await gateway.host.plugins.tools(["t"], call_scope())
    assert await tools["t"]["callable"](a=1) == 5
    header, payload = gateway.heard[1]
    assert (header["do"], header["call"]) == ("tool", 7)
    assert payload.value == {"number": 2, "arguments": {"a": 1}}


async def test_events_are_sent() -> None:
    gateway = Gateway(PipeData(True), PipeData({"value": 1}))
    events = RemoteEvents(gateway.client)
    assert await events.emit(EventTarget("u", "c"), {"type": "x"}) is True
    assert await events.call(EventTarget("u", "c"), {"type": "x"}) == {"value": 1}
    assert gateway.heard[0][1].value["target"]["chat_id"] == "c"


async def test_a_question_that_is_cancelled_is_taken_back() -> None:
    gateway = Gateway()
    asked = asyncio.ensure_future(gateway.host.users.find("u"))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    first, last = gateway.heard[0][0], gateway.heard[-1][0]
    assert (last["tell"], last["of"]) == ("withdraw", first["ask"])
    gateway.client.take({"ask": first["ask"]}, b"")


@pytest.mark.parametrize("when", ["before it is taken back", "before it is seen", "late"])
async def test_a_stream_that_nobody_waits_for_any_more_is_dropped(when: str) -> None:
    gateway = Gateway()
    run = gateway.host.completions.run("u", {}, whole_pipeline=False, scope=call_scope())
    asked = asyncio.ensure_future(run)
    await asyncio.sleep(0)
    more, data = pack_at_once(PipeData({"frames": 3}))
    answer = {"ask": gateway.heard[0][0]["ask"], **more}
    if when == "before it is seen":
        gateway.client.take(answer, data)
    asked.cancel()
    if when == "late":
        await asyncio.wait([asked])
    if when != "before it is seen":
        gateway.client.take(answer, data)
    await asyncio.wait([asked])
    assert asked.cancelled()
    dropped = [header["frames"] for header, _ in gateway.heard if header.get("do") == "drop"]
    assert dropped == [3]


async def test_a_late_answer_of_another_kind_drops_nothing() -> None:
    gateway = Gateway()
    asked = asyncio.ensure_future(RemoteEvents(gateway.client).call(EventTarget("u"), {}))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    more, data = pack_at_once(PipeData({"frames": 3}))
    gateway.client.take({"ask": gateway.heard[0][0]["ask"], **more}, data)
    assert [header.get("do") for header, _ in gateway.heard] == ["call", None]
