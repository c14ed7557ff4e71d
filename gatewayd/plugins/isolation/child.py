"""Main module of a plugin process: `python -m gatewayd.plugins.isolation.child`.

The process loads and calls the plugin with the same code as the gateway, and reaches the host through the
pipe. It ends when the gateway ends or closes the pipe.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.log_levels import LibraryDebug
from gatewayd.plugins.isolation.call_results import OutcomeWriter
from gatewayd.plugins.isolation.calls import FILTER_METHODS, ReceivedCall, read_call
from gatewayd.plugins.isolation.host_proxy import (
    HostCallClient,
    RemoteEvents,
    make_remote_host,
    make_tool_caller,
)
from gatewayd.plugins.isolation.inbox import end_process, serve_messages
from gatewayd.plugins.isolation.lent_streams import LentStreams
from gatewayd.plugins.isolation.memory import MemoryGauge, raise_oom_score
from gatewayd.plugins.isolation.messages import (
    LOGGED_FIELDS,
    MAX_ERROR_CHARACTERS,
    SPENT_FIELD,
    Headers,
    PipeData,
    pack_at_once,
    render_error,
    render_failure,
    unpack_at_once,
)
from gatewayd.plugins.isolation.plugin_facts import facts_of, refresh_facts
from gatewayd.plugins.open_webui.finder import install
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.runtime.instance import PluginInstance
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.runtime.loader import LoadingOptions, PluginLoader
from gatewayd.plugins.runtime.output import capture_output
from gatewayd.plugins.runtime.repeated_calls import Result
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from gatewayd.workers import ParentPipe

LOOSE_METHODS: Final = frozenset({"action"})
"""Methods of functions whose result may be any object, like the result of a tool."""
CALL: Final = "call"
STREAM_REQUESTS: Final = frozenset({"repeat", "next", "close"})
"""Requests after which the facts of the plugin are not sent again."""
STACK_BYTES: Final = 2 << 20
"""Stack size of a thread; all of it counts as data memory of the process, even if unused."""
END_SECONDS: Final = 5.0
CHECK_SECONDS: Final = 0.5
"""Interval of the checks for calls that still run after they were stopped."""
_user_valves: Final[ContextVar[Mapping[str, Any]]] = ContextVar("gatewayd_user_valves")


class GatewaySender:
    """Sends messages to the gateway that are not answers."""

    def __init__(self, parent: ParentPipe) -> None:
        self._parent = parent

    def say(self, header: Headers, blob: bytes = b"") -> None:
        """Send a message; may be called from any thread."""
        self._parent.say(header, blob)

    def tell(self, what: str, value: Any) -> None:
        """Send a notice."""
        more, blob = pack_at_once(PipeData(value))
        self.say({"tell": what, **more}, blob)


class PipeHandler(logging.Handler):
    """Log handler that sends log lines to the gateway."""

    def __init__(self, sender: GatewaySender) -> None:
        super().__init__()
        self._sender = sender

    def emit(self, record: logging.LogRecord) -> None:
        """Send one line."""
        # Formatting the message may run code of the plugin.
        value = run_guarded(lambda: _line(record))
        if value.error is None:
            self._sender.tell("log", value.value)
            return
        try:
            raise value.error
        except type(value.error):
            self.handleError(record)


class CallValves:
    """A `UserValvesStore` with the user valves that came with the current call."""

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the valves of the user of the call."""
        del user_id, family, plugin_id
        return dict(_user_valves.get({}))

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        """Raise internal: only the gateway stores valves."""
        raise GatewayError(ErrorKind.INTERNAL, "cannot store valves in the process of a plugin")


@dataclass(frozen=True, slots=True)
class ProcessOpening:
    """The first message: the plugin and its environment."""

    plugin: Plugin
    host: Mapping[str, Any]
    packages: str | None
    not_installed: str
    seconds: float
    level: int
    debug_loggers: Sequence[str]

    @classmethod
    def read(cls, value: dict[str, Any]) -> "ProcessOpening":
        """Return the opening of the value of a message."""
        plugin = value["plugin"]
        record = Plugin(
            **{**plugin, "family": PluginFamily(plugin["family"]), "kind": PluginKind(plugin["kind"])}
        )
        rest = {name: value for name, value in value.items() if name != "plugin"}
        return cls(record, **rest)


class ChildService:
    """Serves the requests of the gateway, each in a task of its own."""

    def __init__(self, parent: ParentPipe) -> None:
        self._parent = parent
        self._sender = GatewaySender(parent)
        self._client = HostCallClient(self._sender.say)
        self._streams = LentStreams(self._items)
        self._memory = MemoryGauge()
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._loaded: PluginInstance | None = None
        self._sent_facts: Mapping[str, Any] = {}
        self._check_timer: asyncio.TimerHandle | None = None

    def take(self, message: dict[str, Any], blob: bytes) -> None:
        """Handle a message of the gateway."""
        match message["do"]:
            case "answer":
                self._client.take(message, blob)
            case "cancel":
                self._cancel(message["call"])
            case _:
                task = self._start(self._answer(message, blob))
                if message["do"] in ("call", "repeat"):
                    self._calls[message["call"]] = task
                    task.add_done_callback(lambda _: self._calls.pop(message["call"], None))

    def _cancel(self, number: int) -> None:
        """Cancel a call, or close the streams of an answered call whose answer the gateway dropped."""
        call = self._calls.get(number)
        if call is None or call.done():
            _ = self._start(self._streams.close_of(number))
        else:
            call.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # Without an answer the gateway would wait for ever.
            end_process(error)

    async def _answer(self, message: dict[str, Any], blob: bytes) -> None:
        outcome = await run_guarded_async(lambda: self._done(message, unpack_at_once(message, blob)))
        error = outcome.error
        if error is None:
            outcome = run_guarded(lambda: self._packed(message, outcome.value))
            error = outcome.error
        if error is None:
            more, data = outcome.value
        else:
            if "call" in message:
                await self._streams.close_of(message["call"])
            self._tell_facts(message["do"])
            more, data = _failure(error), b""
        if self._is_spent(error):
            more = {**more, SPENT_FIELD: True}
        self._parent.answer(message, more, data)

    def _packed(self, message: dict[str, Any], payload: PipeData) -> tuple[Headers, bytes]:
        packed = pack_at_once(payload)
        self._tell_facts(message["do"])
        return packed

    def _is_spent(self, error: BaseException | None) -> bool:
        """Whether further calls would fail for lack of memory, as this one may have."""
        exception = error.exception if isinstance(error, PluginError) else type(error).__name__
        if exception == MemoryError.__name__:
            return True
        # Without a failure, let concurrent work finish first.
        is_idle = self._streams.is_empty and len(self._tasks) == 1
        return (is_idle or isinstance(error, PluginError)) and self._memory.is_full

    async def _done(self, message: dict[str, Any], payload: PipeData) -> PipeData:
        value = payload.value
        match message["do"]:
            case "load":
                return await self._load(ProcessOpening.read(value))
            case "call":
                return await self._call(message, value)
            case "repeat":
                return await self._repeat(message, value)
            case "next":
                return await self._streams.next(message["stream"])
            case "close":
                await self._streams.close(message["stream"])
                return PipeData()
            case "read":
                return self._writer(0).write(await self._ready().read(message["name"]), is_loose=False)
            case other:
                return PipeData(await self._set_up(other, message, value))

    async def _set_up(self, what: str, message: dict[str, Any], value: Any) -> Any:
        loaded = self._ready()
        match what:
            case "hook":
                return await loaded.run_hook(message["name"])
            case "take":
                await loaded.take(replace(loaded.plugin, valves=value))
            case "schema" if value["of_user"]:
                return await loaded.user_valves_schema(value["user"])
            case "schema":
                return await loaded.valves_schema(value["user"])
            case "valves":
                values = value["stored"], value["values"]
                return await loaded.changed_valves(*values, of_user=value["of_user"])
            case "end":
                await loaded.end(END_SECONDS)
            case other:
                raise GatewayError(ErrorKind.INTERNAL, f"cannot do {other!r}")
        return None

    async def _load(self, opening: ProcessOpening) -> PipeData:
        handler = PipeHandler(self._sender)
        # Debug lines of libraries may contain secrets, even where a library sets its own level.
        handler.addFilter(LibraryDebug(opening.level, opening.debug_loggers))
        logging.getLogger().addHandler(handler)
        named = bool(opening.debug_loggers)
        logging.getLogger().setLevel(logging.DEBUG if named else max(opening.level, logging.INFO))
        logging.getLogger("gatewayd").setLevel(opening.level)
        host = make_remote_host(self._client, **opening.host)
        loop = asyncio.get_running_loop()
        services = CallServices(
            loop, RemoteEvents(self._client), CallValves(), install(host, loop).make_request
        )
        # The gateway has installed the requirements.
        packages = opening.packages
        installation = InstallationOptions(Path(packages or os.devnull), packages is not None)
        requirements = RequirementsInstaller(installation, not_installed=opening.not_installed)
        requirements.open()
        loader = PluginLoader(services, LoadingOptions(requirements, opening.seconds))
        self._loaded = await loader.load(opening.plugin, self._note)
        self._memory.begin()
        found = self._loaded.plugin
        return PipeData({"kind": found.kind.value, "specs": found.specs, "missing": list(found.missing)})

    async def _call(self, message: dict[str, Any], value: dict[str, Any]) -> PipeData:
        loaded, method = self._ready(), message["method"]
        received = self._received(message, value)
        is_filter = method in FILTER_METHODS
        value = await loaded.call(method, received.scope, received.arguments)
        is_loose = loaded.plugin.family is PluginFamily.TOOL or method in LOOSE_METHODS
        given: dict[str, Any] = {}
        if is_filter and value is None:
            given["body"] = _without_metadata(received.arguments.get("body"), received)
        given["is_shared"] = isinstance(value, dict) and value.get("metadata") is received.scope.metadata
        writer = self._writer(message["call"])
        outcome = writer.write(_without_metadata(value, received), is_loose=is_loose)
        given |= received.changes()
        return PipeData({**given, "outcome": outcome.value}, outcome.attachment)

    async def _repeat(self, message: dict[str, Any], value: dict[str, Any]) -> PipeData:
        received = self._received(message, value)
        calls = self._ready().repeated(message["method"], value["name"], received.scope)
        values = [orjson.dumps(value) for value in value["values"]]
        found = await calls.run(values, lambda: received.arguments)
        results = [_result(*pair) for pair in zip(found, values, strict=True)]
        return PipeData({**received.changes(), "results": results})

    def _received(self, message: dict[str, Any], value: dict[str, Any]) -> ReceivedCall:
        number = message["call"]
        received = read_call(number, value, make_tool_caller(self._client, number))
        _user_valves.set(received.user_valves)
        return received

    def _writer(self, call: int) -> OutcomeWriter:
        return OutcomeWriter(partial(self._streams.keep, call), self._items)

    def _items(self, source: AsyncIterable[Any]) -> PluginIterator:
        return self._ready().items(source)

    def _ready(self) -> PluginInstance:
        if self._loaded is None:
            raise GatewayError(ErrorKind.INTERNAL, "cannot call a plugin that is not loaded")
        return self._loaded

    def _note(self, plugin: Plugin, doing: str, sentence: str) -> None:
        del plugin
        self._sender.tell("note", {"doing": doing, "sentence": _readable(sentence)})

    def _tell_facts(self, after: str) -> None:
        """Send the facts of the plugin if they have changed; `after` is the request that was served."""
        if self._loaded is None or after in STREAM_REQUESTS:
            return
        is_call = after == CALL and self._sent_facts
        facts = refresh_facts(self._sent_facts, self._loaded) if is_call else facts_of(self._loaded)
        if facts != self._sent_facts:
            self._sent_facts = facts
            self._sender.tell("facts", facts)
        if self._loaded.left_behind and self._check_timer is None:
            self._check_timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Send the facts again while calls still run after they were stopped."""
        self._check_timer = None
        self._tell_facts(CALL)


def _without_metadata(value: Any, received: ReceivedCall) -> Any:
    """Return a body without the metadata of the request, which the gateway restores."""
    if isinstance(value, dict) and value.get("metadata") is received.scope.metadata:
        return {name: member for name, member in value.items() if name != "metadata"}
    return value


def _result(result: Result, value: bytes) -> dict[str, Any] | None:
    """Return the encoded result for a value; None when it is unchanged."""
    if result is value:
        return None
    if isinstance(result, str):
        return {"problem": _readable(result)[:MAX_ERROR_CHARACTERS]}
    return {"value": orjson.loads(result)}


def _failure(error: BaseException) -> Headers:
    if isinstance(error, PluginError):
        return render_failure(error)
    if isinstance(error, GatewayError):
        return render_error(error)
    failed = FailureDetails(str(error), type(error).__name__)
    return render_failure(PluginError("plugin", "", failed))


def _line(record: logging.LogRecord) -> dict[str, Any]:
    """Return the message of a log line."""
    found = {name: str(getattr(record, name)) for name in LOGGED_FIELDS if hasattr(record, name)}
    fields = {name: _readable(value[:MAX_ERROR_CHARACTERS]) for name, value in found.items()}
    message, name = record.getMessage()[:MAX_ERROR_CHARACTERS], record.name[:MAX_ERROR_CHARACTERS]
    line = {"level": record.levelno, "logger": _readable(name), "message": _readable(message)}
    return {**line, "fields": fields}


def _readable(text: str) -> str:
    """Return a text without unpaired surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


async def _serve(parent: ParentPipe) -> None:
    loop, service = asyncio.get_running_loop(), ChildService(parent)

    def take(message: dict[str, Any], blob: bytes) -> None:
        loop.call_soon_threadsafe(service.take, message, blob)

    threading.Thread(target=serve_messages, args=(parent, take), name="messages", daemon=True).start()
    await asyncio.Event().wait()


def main() -> None:
    """Serve the gateway until it closes the pipe."""
    parent = ParentPipe()
    raise_oom_score()
    threading.stack_size(STACK_BYTES)
    with capture_output():
        asyncio.run(_serve(parent))


if __name__ == "__main__":
    main()
