"""Answers what the process of a plugin asks of the gateway, with the rights of the call that it asks in."""

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.events.records import EventTarget
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.isolation.call_results import OutcomeWriter
from gatewayd.plugins.isolation.calls import OpenCall
from gatewayd.plugins.isolation.host_table import SCOPE, find_method
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.streams import EventFrames
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.arguments import CallServices, run_on_loop
from gatewayd.plugins.runtime.call_context import CallInfo, current_call
from gatewayd.plugins.runtime.call_depth import current_depth
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.tool_results import ServerReply

MAX_OVER_CALLS: Final = 32
"""Calls that a plugin may ask in although they are over: those that ended last."""
MAX_REQUEST_ID: Final = 64
"""Characters of the id of a request, which goes to the log."""

MAX_STREAMS: Final = 100
"""Answers of models that a process reads at a time."""


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """What questions are answered with; `host` returns the host once the gateway has started."""

    around: CallServices
    host: Callable[[], PluginHost]


@dataclass(frozen=True, slots=True)
class OpenedFrames(PipeData):
    """The answer to a question that opened a stream, with the number to read it by."""


class PluginQuestions:
    """Answers the questions of one process, and knows its calls."""

    def __init__(self, plugin: Plugin, answering: QuestionParts) -> None:
        self._plugin = plugin
        self._around = answering.around
        self._host = answering.host
        self._calls: dict[int, OpenCall] = {}
        self._over: deque[int] = deque()
        self._streams: dict[int, EventFrames] = {}
        self._last = 0

    def begin(self, scope: CallScope) -> OpenCall:
        """Return a new call."""
        self._last += 1
        call = OpenCall(self._last, scope, current_depth.get())
        self._calls[call.number] = call
        return call

    def keep(self, call: OpenCall) -> None:
        """Take note of a stream that a call gave: the call is over when all of them are, too."""
        call.open += 1

    def end(self, call: OpenCall) -> None:
        """Take note that a call has answered, or that a stream of it has ended."""
        call.open -= 1
        if call.open:
            return
        self._over.append(call.number)
        if len(self._over) > MAX_OVER_CALLS:
            self._calls.pop(self._over.popleft(), None)

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a question; raises GatewayError."""
        call = self._calls.get(_number(asked.get("call")))
        match asked.get("do"):
            case "emit" | "call" as way:
                return await self._event(way, payload.value)
            case "host":
                return await self._ask_host(asked, payload, call)
            case "tool":
                return await self._run_tool(payload.value, call)
            case "frame":
                return await self._frame(_number(asked.get("frames")))
            case "drop":
                return await self._drop(_number(asked.get("frames")))
            case other:
                raise invalid(f"cannot answer {str(other)[:40]!r}")

    async def drop(self, answer: PipeData) -> None:
        """End the stream of an answer that the process does not get."""
        if isinstance(answer, OpenedFrames):
            await self._drop(answer.value["frames"])

    async def close(self) -> None:
        """End the answers that are still read."""
        for number in list(self._streams):
            await self._drop(number)

    async def _event(self, way: str, told: Any) -> PipeData:
        try:
            ids = [told["target"][name] for name in ("user_id", "chat_id", "message_id", "session_id")]
            ids.append(told["target"].get("request_id", ""))
            event = told["event"]
        except (LookupError, TypeError, AttributeError):
            raise invalid("cannot send an event: it goes to nobody") from None
        if not all(isinstance(one, str) for one in ids):
            raise invalid("cannot send an event: an id is no text")
        ids[-1] = ids[-1][:MAX_REQUEST_ID]
        events, target = self._around.events, EventTarget(*ids)
        work = events.emit if way == "emit" else events.call
        return PipeData(await run_on_loop(self._around, lambda: work(target, event)))

    async def _ask_host(self, asked: Mapping[str, Any], payload: PipeData, call: OpenCall | None) -> PipeData:
        part, name = asked.get("part"), asked.get("method")
        method = find_method(part, name)
        given = _with_content(payload) if (part, name) == ("files", "store") else payload.value
        arguments = method.read(given)
        scope = None if call is None else call.scope
        if method.has_scope:
            if scope is None and name == "tools":
                raise invalid("cannot give tools: the call is over")
            arguments[SCOPE] = scope
        function = getattr(getattr(self._host(), str(part)), str(name))
        value = await self._for(call, function(**arguments))
        if call is not None and (part, name) == ("plugins", "tools"):
            return PipeData(call.lend(value))
        return self._kept(value) if isinstance(value, AsyncIterator) else PipeData(value)

    async def _run_tool(self, told: Any, call: OpenCall | None) -> PipeData:
        try:
            number, arguments = _number(told["number"]), dict(told["arguments"])
        except (LookupError, TypeError, ValueError):
            raise invalid("cannot run a tool: it has no number or no arguments") from None
        if call is None or not 0 <= number < len(call.callables):
            raise invalid("cannot run a tool: the call that it was given for is over")
        names = {str(name): value for name, value in arguments.items()}
        value = await self._for(call, call.callables[number](**names))
        return _RESULTS.write(value.data if isinstance(value, ServerReply) else value, is_loose=True)

    def _kept(self, frames: AsyncIterator[bytes]) -> PipeData:
        if len(self._streams) >= MAX_STREAMS:
            raise GatewayError(
                ErrorKind.RATE_LIMITED, "cannot answer: the plugin reads too many answers at a time"
            )
        self._last += 1
        self._streams[self._last] = EventFrames(HostBridge(self._host(), self._around.loop), frames)
        return OpenedFrames({"frames": self._last})

    async def _frame(self, number: int) -> PipeData:
        """Return the next frame of an answer, or that there is none."""
        frames = self._streams.get(number)
        if frames is None:
            return PipeData({"is_over": True})
        try:
            return PipeData({"is_over": False}, await anext(frames))
        except StopAsyncIteration:
            self._streams.pop(number, None)
            return PipeData({"is_over": True})
        except GatewayError:
            self._streams.pop(number, None)
            raise

    async def _drop(self, number: int) -> PipeData:
        frames = self._streams.pop(number, None)
        if frames is not None:
            await frames.aclose()
        return PipeData()

    async def _for(self, call: OpenCall | None, work: Coroutine[Any, Any, Any]) -> Any:
        """Await work for whoever the call is for, as code of a plugin in a thread has it done."""
        context = contextvars.copy_context()
        context.run(current_depth.set, 0 if call is None else call.level)
        scope = None if call is None else call.scope
        context.run(current_call.set, CallInfo(self._plugin.family, self._plugin.id, scope))
        gate = HostBridge(self._host(), self._around.loop)
        return await asyncio.wrap_future(context.run(gate.start, work))


def _with_content(payload: PipeData) -> Any:
    """Return the arguments of an upload, whose content is beside them."""
    told = payload.value
    if isinstance(told, dict) and isinstance(told.get("upload"), dict):
        return {**told, "upload": {**told["upload"], "content": payload.attachment}}
    return told


def _no_stream(_: object) -> Any:
    raise invalid("cannot give a stream as the result of a tool")


_RESULTS: Final = OutcomeWriter(_no_stream, _no_stream)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
