"""Proxy of the host in a plugin process: each host call goes over the pipe."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

from gatewayd.errors import invalid
from gatewayd.events.records import EventTarget
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.isolation.call_results import read_outcome
from gatewayd.plugins.isolation.calls import CallActor
from gatewayd.plugins.isolation.host_table import PARTS, SCOPE, find_method
from gatewayd.plugins.isolation.messages import (
    Headers,
    PipeData,
    pack_at_once,
    read_exception,
    unpack_at_once,
)
from gatewayd.plugins.runtime.call_context import current_asker
from gatewayd.plugins.runtime.context import CallScope

Say = Callable[[Headers, bytes], None]
"""Sends a message to the gateway, from any thread."""

STREAM_OPENING_METHOD: Final = ("completions", "run")
"""Part and method of the host call that may open a stream."""
MAX_WITHDRAWN_QUESTIONS: Final = 250
"""Number of withdrawn host calls that are remembered, as the gateway may still answer them."""


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A pending host call; an answer that `opens` a stream has its number."""

    answer: asyncio.Future[PipeData]
    opens: bool


class HostCallClient:
    """Client of host calls, on the loop that receives the answers."""

    def __init__(self, say: Say) -> None:
        self.loop = asyncio.get_running_loop()
        self._say = say
        self._numbers = itertools.count(1)
        self._pending: dict[int, _PendingCall] = {}
        self._withdrawn: deque[int] = deque(maxlen=MAX_WITHDRAWN_QUESTIONS)

    async def ask(self, header: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a host call; raises GatewayError or one of `messages.EXCEPTIONS`.

        A cancellation withdraws the host call, or closes the stream of its answer.
        """
        more, blob = pack_at_once(payload)
        number = next(self._numbers)
        answer: asyncio.Future[PipeData] = asyncio.get_running_loop().create_future()
        opens = (header.get("part"), header.get("method")) == STREAM_OPENING_METHOD
        self._pending[number] = _PendingCall(answer, opens)
        try:
            self._say({"ask": number, **header, **more}, blob)
            return await answer
        except asyncio.CancelledError:
            if answer.cancelled():
                self._withdraw(number, opens)
            elif opens and answer.exception() is None:
                self._drop(answer.result())
            raise
        finally:
            self._pending.pop(number, None)

    def take(self, header: Mapping[str, Any], blob: bytes) -> None:
        """Deliver an answer; close its stream when the caller has left."""
        number, error = header["ask"], read_exception(header)
        pending = self._pending.get(number)
        if pending is None or pending.answer.done():
            opens = number in self._withdrawn if pending is None else pending.opens
            if opens and error is None:
                self._drop(unpack_at_once(header, blob))
        elif error is not None:
            pending.answer.set_exception(error)
        else:
            pending.answer.set_result(unpack_at_once(header, blob))

    def _withdraw(self, number: int, opens: bool) -> None:
        if opens:
            self._withdrawn.append(number)
        self._say({"tell": "withdraw", "of": number}, b"")

    def _drop(self, answer: PipeData) -> None:
        if frames := _frames(answer.value):
            self._say({"ask": next(self._numbers), "do": "drop", "frames": frames, "attached": 0}, b"")


class RemoteEvents:
    """A `runtime.arguments.EventChannel` over the pipe."""

    def __init__(self, client: HostCallClient) -> None:
        self._client = client

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Send an event; False when it is dropped."""
        answer = await self._client.ask({"do": "emit"}, PipeData({"target": asdict(target), "event": event}))
        return bool(answer.value)

    async def call(self, target: EventTarget, event: Any) -> Any:
        """Send a call to the user and return the answer."""
        answer = await self._client.ask({"do": "call"}, PipeData({"target": asdict(target), "event": event}))
        return answer.value


class RemoteFrames(AsyncIterator[bytes]):
    """The frames of a streamed completion, read through the gateway."""

    def __init__(self, client: HostCallClient, number: int) -> None:
        self._client = client
        self._number = number
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame."""
        if self._is_over:
            raise StopAsyncIteration
        answer = await self._client.ask({"do": "frame", "frames": self._number}, PipeData())
        if answer.value["is_over"]:
            self._is_over = True
            raise StopAsyncIteration
        return answer.attachment

    async def aclose(self) -> None:
        """Close the stream in the gateway."""
        if not self._is_over:
            self._is_over = True
            await self._client.ask({"do": "drop", "frames": self._number}, PipeData())


class RemotePart:
    """Proxy of a part of the host, such as `PluginHost.users`."""

    def __init__(self, client: HostCallClient, part: str) -> None:
        self._client = client
        self._part = part

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = find_method(self._part, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            arguments = dict(method.signature.bind(*args, **kwargs).arguments)
            number = _call_of(arguments.pop(SCOPE, None))
            payload = PipeData(arguments)
            if (self._part, name) == ("files", "store"):
                upload = asdict(arguments["upload"])
                payload = PipeData({**arguments, "upload": upload}, upload.pop("content"))
            header = {"do": "host", "part": self._part, "method": name, "call": number}
            return self._read(name, number, await self._client.ask(header, payload))

        call.__name__ = name
        return call

    def _read(self, name: str, number: int, answer: PipeData) -> Any:
        value = answer.value
        match self._part, name:
            case "files", "path":
                return None if value is None else Path(value)
            case "completions", "run" if frames := _frames(value):
                return RemoteFrames(self._client, frames)
            case "plugins", "tools":
                make_caller = make_tool_caller(self._client, number)
                return {
                    key: {**tool, "callable": make_caller(tool["callable"])} for key, tool in value.items()
                }
            case _:
                return value


def make_remote_host(client: HostCallClient, data_dir: str, secret_key: str) -> PluginHost:
    """Return a host whose parts are proxies."""
    parts = {part: cast(Any, RemotePart(client, part)) for part in PARTS}
    return PluginHost(**parts, data_dir=Path(data_dir), secret_key=secret_key)


def make_tool_caller(client: HostCallClient, call: int) -> Callable[[int], Callable[..., Any]]:
    """Return a function that makes, for a number, the coroutine function of a tool of the call."""

    async def ask(number: int, arguments: dict[str, Any]) -> Any:
        header = {"do": "tool", "call": call}
        answer = await client.ask(header, PipeData({"number": number, "arguments": arguments}))
        return read_outcome(answer, _no_stream)

    def make_caller(number: int) -> Callable[..., Any]:
        async def run(**arguments: Any) -> Any:
            work = ask(number, arguments)
            if asyncio.get_running_loop() is client.loop:
                return await work
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, client.loop))

        return run

    return make_caller


def _frames(value: Any) -> int | None:
    """Return the number of the stream that an answer opened; None without one."""
    number: int | None = value["frames"] if value.keys() == {"frames"} else None
    return number


def _call_of(scope: CallScope | None) -> int:
    """Return the number of the call that makes a host call; 0 outside of calls."""
    actor = current_asker.get() if scope is None else scope.actor
    return actor.call if isinstance(actor, CallActor) else 0


def _no_stream(_: int) -> Any:
    raise invalid("cannot read a stream as the result of a tool")
