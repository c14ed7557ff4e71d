"""The gateway as code in the process of a plugin reaches it: each question goes over the pipe."""

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
"""Writes a message to the gateway, from any thread."""

STREAM_OPENING_METHOD: Final = ("completions", "run")
"""What may be answered with a stream: part and method."""
MAX_WITHDRAWN_QUESTIONS: Final = 250
"""Questions that were taken back and may be answered all the same: the gateway answers so many at a time."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Somebody who asked; an answer that `opens` a stream has its number."""

    answer: asyncio.Future[PipeData]
    opens: bool


class GatewayAsker:
    """Asks the gateway, on the loop that its answers come to."""

    def __init__(self, say: Say) -> None:
        self.loop = asyncio.get_running_loop()
        self._say = say
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._withdrawn: deque[int] = deque(maxlen=MAX_WITHDRAWN_QUESTIONS)

    async def ask(self, header: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a question; raises GatewayError, or an exception that plugins know.

        Being cancelled takes the question back, or ends the stream of its answer.
        """
        more, blob = pack_at_once(payload)
        number = next(self._numbers)
        answer: asyncio.Future[PipeData] = asyncio.get_running_loop().create_future()
        opens = (header.get("part"), header.get("method")) == STREAM_OPENING_METHOD
        self._waiting[number] = _Waiting(answer, opens)
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
            self._waiting.pop(number, None)

    def take(self, header: Mapping[str, Any], blob: bytes) -> None:
        """Take an answer; a stream that nobody waits for any more is ended."""
        number, error = header["ask"], read_exception(header)
        waiting = self._waiting.get(number)
        if waiting is None or waiting.answer.done():
            opens = number in self._withdrawn if waiting is None else waiting.opens
            if opens and error is None:
                self._drop(unpack_at_once(header, blob))
        elif error is not None:
            waiting.answer.set_exception(error)
        else:
            waiting.answer.set_result(unpack_at_once(header, blob))

    def _withdraw(self, number: int, opens: bool) -> None:
        if opens:
            self._withdrawn.append(number)
        self._say({"tell": "withdraw", "of": number}, b"")

    def _drop(self, answer: PipeData) -> None:
        if frames := _frames(answer.value):
            self._say({"ask": next(self._numbers), "do": "drop", "frames": frames, "attached": 0}, b"")


class RemoteEvents:
    """A `plugins.arguments.Events` over the pipe."""

    def __init__(self, asker: GatewayAsker) -> None:
        self._asker = asker

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Send an event."""
        told = await self._asker.ask({"do": "emit"}, PipeData({"target": asdict(target), "event": event}))
        return bool(told.value)

    async def call(self, target: EventTarget, event: Any) -> Any:
        """Ask the user."""
        told = await self._asker.ask({"do": "call"}, PipeData({"target": asdict(target), "event": event}))
        return told.value


class RemoteFrames(AsyncIterator[bytes]):
    """The frames of an answer that the gateway reads."""

    def __init__(self, asker: GatewayAsker, number: int) -> None:
        self._asker = asker
        self._number = number
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame."""
        if self._is_over:
            raise StopAsyncIteration
        told = await self._asker.ask({"do": "frame", "frames": self._number}, PipeData())
        if told.value["is_over"]:
            self._is_over = True
            raise StopAsyncIteration
        return told.attachment

    async def aclose(self) -> None:
        """Have the reading stopped."""
        if not self._is_over:
            self._is_over = True
            await self._asker.ask({"do": "drop", "frames": self._number}, PipeData())


class RemotePart:
    """A part of the gateway, such as `PluginHost.users`: its methods ask."""

    def __init__(self, asker: GatewayAsker, part: str) -> None:
        self._asker = asker
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
            return self._read(name, number, await self._asker.ask(header, payload))

        call.__name__ = name
        return call

    def _read(self, name: str, number: int, answer: PipeData) -> Any:
        value = answer.value
        match self._part, name:
            case "files", "path":
                return None if value is None else Path(value)
            case "completions", "run" if frames := _frames(value):
                return RemoteFrames(self._asker, frames)
            case "plugins", "tools":
                lent = make_tool_caller(self._asker, number)
                return {key: {**tool, "callable": lent(tool["callable"])} for key, tool in value.items()}
            case _:
                return value


def make_remote_host(asker: GatewayAsker, data_dir: str, secret_key: str) -> PluginHost:
    """Return the host of the process."""
    parts = {part: cast(Any, RemotePart(asker, part)) for part in PARTS}
    return PluginHost(**parts, data_dir=Path(data_dir), secret_key=secret_key)


def make_tool_caller(asker: GatewayAsker, call: int) -> Callable[[int], Callable[..., Any]]:
    """Return what makes the functions that call the tools of a call, by their numbers."""

    async def ask(number: int, arguments: dict[str, Any]) -> Any:
        header = {"do": "tool", "call": call}
        told = await asker.ask(header, PipeData({"number": number, "arguments": arguments}))
        return read_outcome(told, _no_stream)

    def lent(number: int) -> Callable[..., Any]:
        async def run(**arguments: Any) -> Any:
            work = ask(number, arguments)
            if asyncio.get_running_loop() is asker.loop:
                return await work
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, asker.loop))

        return run

    return lent


def _frames(value: Any) -> int | None:
    """Return the number of the stream that an answer has opened, None without one."""
    number: int | None = value["frames"] if value.keys() == {"frames"} else None
    return number


def _call_of(scope: CallScope | None) -> int:
    """Return the number of the call that something is asked in, 0 for none."""
    actor = current_asker.get() if scope is None else scope.actor
    return actor.call if isinstance(actor, CallActor) else 0


def _no_stream(_: int) -> Any:
    raise invalid("cannot read a stream as the result of a tool")
