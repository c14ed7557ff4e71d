"""Service for the host calls of a plugin process, with the rights of the call that makes them."""

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
"""Number of ended calls, the latest ones, in which a plugin may still make host calls."""
MAX_REQUEST_ID: Final = 64
"""Maximum length of a request id, which is logged."""

MAX_STREAMS: Final = 100
"""Maximum number of streamed completions that a process reads at a time."""


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """Services behind host calls; `host` returns the host once the gateway has started."""

    services: CallServices
    host: Callable[[], PluginHost]


@dataclass(frozen=True, slots=True)
class OpenedFrames(PipeData):
    """The answer to a host call that opened a stream, with the number of the stream."""


class PluginQuestions:
    """Serves the host calls of one process and tracks the calls that it serves."""

    def __init__(self, plugin: Plugin, answering: QuestionParts) -> None:
        self._plugin = plugin
        self._services = answering.services
        self._host = answering.host
        self._calls: dict[int, OpenCall] = {}
        self._over: deque[int] = deque()
        self._streams: dict[int, EventFrames] = {}
        self._last = 0

    def begin(self, scope: CallScope) -> OpenCall:
        """Register a call and return it."""
        self._last += 1
        call = OpenCall(self._last, scope, current_depth.get())
        self._calls[call.number] = call
        return call

    def keep(self, call: OpenCall) -> None:
        """Count a stream of a call; the call ends after its answer and all its streams."""
        call.open += 1

    def end(self, call: OpenCall) -> None:
        """Count the end of the answer or of a stream of a call."""
        call.open -= 1
        if call.open:
            return
        self._over.append(call.number)
        if len(self._over) > MAX_OVER_CALLS:
            self._calls.pop(self._over.popleft(), None)

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a host call; raises GatewayError."""
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
                raise invalid(f"cannot serve host call {str(other)[:40]!r}")

    async def drop(self, answer: PipeData) -> None:
        """Close the stream of an answer that was not delivered."""
        if isinstance(answer, OpenedFrames):
            await self._drop(answer.value["frames"])

    async def close(self) -> None:
        """Close all open streams."""
        for number in list(self._streams):
            await self._drop(number)

    async def _event(self, way: str, value: Any) -> PipeData:
        try:
            ids = [value["target"][name] for name in ("user_id", "chat_id", "message_id", "session_id")]
            ids.append(value["target"].get("request_id", ""))
            event = value["event"]
        except (LookupError, TypeError, AttributeError):
            raise invalid("cannot send an event: it has no target") from None
        if not all(isinstance(one, str) for one in ids):
            raise invalid("cannot send an event: an id is not a string")
        ids[-1] = ids[-1][:MAX_REQUEST_ID]
        events, target = self._services.events, EventTarget(*ids)
        work = events.emit if way == "emit" else events.call
        return PipeData(await run_on_loop(self._services, lambda: work(target, event)))

    async def _ask_host(self, asked: Mapping[str, Any], payload: PipeData, call: OpenCall | None) -> PipeData:
        part, name = asked.get("part"), asked.get("method")
        method = find_method(part, name)
        given = _with_content(payload) if (part, name) == ("files", "store") else payload.value
        arguments = method.read(given)
        scope = None if call is None else call.scope
        if method.has_scope:
            if scope is None and name == "tools":
                raise invalid("cannot list tools: the call has ended")
            arguments[SCOPE] = scope
        function = getattr(getattr(self._host(), str(part)), str(name))
        value = await self._run_in_context(call, function(**arguments))
        if call is not None and (part, name) == ("plugins", "tools"):
            return PipeData(call.lend(value))
        return self._keep_stream(value) if isinstance(value, AsyncIterator) else PipeData(value)

    async def _run_tool(self, value: Any, call: OpenCall | None) -> PipeData:
        try:
            number, arguments = _number(value["number"]), dict(value["arguments"])
        except (LookupError, TypeError, ValueError):
            raise invalid("cannot run a tool: it has no number or no arguments") from None
        if call is None or not 0 <= number < len(call.callables):
            raise invalid("cannot run a tool: its call has ended")
        names = {str(name): value for name, value in arguments.items()}
        value = await self._run_in_context(call, call.callables[number](**names))
        return _RESULTS.write(value.data if isinstance(value, ServerReply) else value, is_loose=True)

    def _keep_stream(self, frames: AsyncIterator[bytes]) -> PipeData:
        if len(self._streams) >= MAX_STREAMS:
            raise GatewayError(
                ErrorKind.RATE_LIMITED, "cannot complete: the plugin reads too many streams at a time"
            )
        self._last += 1
        self._streams[self._last] = EventFrames(HostBridge(self._host(), self._services.loop), frames)
        return OpenedFrames({"frames": self._last})

    async def _frame(self, number: int) -> PipeData:
        """Return the next frame of a stream, or `is_over`."""
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

    async def _run_in_context(self, call: OpenCall | None, work: Coroutine[Any, Any, Any]) -> Any:
        """Await work in the context of a call, as for a plugin in a thread."""
        context = contextvars.copy_context()
        context.run(current_depth.set, 0 if call is None else call.level)
        scope = None if call is None else call.scope
        context.run(current_call.set, CallInfo(self._plugin.family, self._plugin.id, scope))
        bridge = HostBridge(self._host(), self._services.loop)
        return await asyncio.wrap_future(context.run(bridge.start, work))


def _with_content(payload: PipeData) -> Any:
    """Return the arguments of an upload with its content, which is the attachment."""
    value = payload.value
    if isinstance(value, dict) and isinstance(value.get("upload"), dict):
        return {**value, "upload": {**value["upload"], "content": payload.attachment}}
    return value


def _no_stream(_: object) -> Any:
    raise invalid("cannot return a stream as the result of a tool")


_RESULTS: Final = OutcomeWriter(_no_stream, _no_stream)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
