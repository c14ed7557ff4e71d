"""Supervisor of a plugin process: starts it, restarts it on demand after its end, and ends it."""

import asyncio
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.plugins.isolation.backoff import StartPause
from gatewayd.plugins.isolation.calls import render_plugin
from gatewayd.plugins.isolation.host_calls import PluginQuestions, QuestionParts
from gatewayd.plugins.isolation.messages import LOGGED_FIELDS, MAX_ERROR_CHARACTERS, PipeData
from gatewayd.plugins.isolation.plugin_facts import MAX_METHODS, PluginFacts, read_facts
from gatewayd.plugins.isolation.process import MALFORMED_ERRORS, PluginProcess, ProcessOptions, make_failure
from gatewayd.plugins.records import Plugin, PluginKind, log_fields
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.runner import ProblemRecorder
from gatewayd.plugins.source import frontmatter
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

LEVELS: Final = frozenset({logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR})
GATEWAY_LOGGER: Final = "gatewayd"
NON_LOGGER_CHARACTERS: Final = re.compile(r"[^\w.-]")
PLUGIN_SECRET_VARIABLE: Final = "WEBUI_SECRET_KEY"  # noqa: S105 - a name
"""Environment variable with the secret of plugins, which is derived from that of the gateway."""
NOTE_INTERVAL_SECONDS: Final = 0.1
"""Minimum interval of recorded problems, after a burst of ten."""
START_SECONDS: Final = 20.0
"""Seconds for a process to start and answer, in addition to the time limit of loading."""


@dataclass(frozen=True, slots=True)
class IsolationOptions:
    """Options of processes: their limits and environment.

    `packages` is the directory of the packages installed for plugins, `load_seconds` the time limit of
    loading, `debug_loggers` the argument of `log_levels.LibraryDebug`.
    """

    process: ProcessOptions
    packages: Path | None
    load_seconds: float
    debug_loggers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class IsolationParts:
    """Services for processes; `check_room` raises PluginError when too many processes run."""

    answering: QuestionParts
    options: IsolationOptions
    tasks: TaskRegistry
    check_room: Callable[[Plugin], None]


class ProcessSupervisor:
    """Owns the process of a plugin and the facts that it last sent.

    `on_restart` is awaited in a task of its own after a restart. `not_installed` is the reason why required
    packages were not installed, empty when they were.
    """

    def __init__(
        self,
        plugin: Plugin,
        parts: IsolationParts,
        recorder: ProblemRecorder,
        on_restart: Callable[[], Awaitable[None]],
        not_installed: str = "",
    ) -> None:
        self.plugin = plugin
        self.parts = parts
        self.facts = PluginFacts()
        self.questions = PluginQuestions(plugin, parts.answering)
        self.process: PluginProcess | None = None
        self._recorder = recorder
        self._on_restart = on_restart
        self._not_installed = not_installed
        self._starting = asyncio.Lock()
        self._pause = StartPause()
        self._is_over = False
        self._is_starting = False
        self._last_noted = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.is_alive

    @property
    def has_place(self) -> bool:
        """Whether its process counts against the maximum: it runs or is starting."""
        return self._is_starting or self.is_alive

    async def start(self) -> None:
        """Start the process and load the plugin in it; PluginError when that fails."""
        async with self._starting:
            await self._start()

    async def take(self, plugin: Plugin) -> None:
        """Use another record with the same source and new valves."""
        async with self._starting:
            self.plugin = plugin
            if self.process is None or not self.process.is_alive:
                return
            try:
                await self.process.ask({"do": "take"}, PipeData(plugin.valves))
            except PluginError as failure:
                self.note("valves", failure.message)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Run `on_shutdown`, and end the process with all that runs in it."""
        self._is_over = True
        process = self.process
        if process is None:
            return
        try:
            if process.is_alive:
                await process.ask({"do": "end"}, seconds=timeout)
        except GatewayError as failure:
            log.warning(
                "cannot end plugin: %s",
                failure.message,
                extra=log_fields(self.plugin.family, self.plugin.id),
            )
        await self.questions.close()
        await process.close()

    async def ready(self) -> PluginProcess:
        """Return the running process; restart it when it has ended."""
        if self.process is not None and self.process.is_alive:
            return self.process
        async with self._starting:
            if self.process is not None and self.process.is_alive:
                return self.process
            return await self._start_again()

    async def _start_again(self) -> PluginProcess:
        former = self.process
        if former is not None:
            self._pause.end()
            self.process = None
            await self.questions.close()
            await former.close()
        if self._is_over:
            raise make_failure(self.plugin, "it was ended")
        if left := self._pause.left:
            ends = f"its process ended {self._pause.ended} times"
            raise make_failure(self.plugin, f"{ends}; it is started again in {math.ceil(left)} s")
        try:
            process = await self._start()
        except GatewayError:
            self._pause.end()
            raise
        self.parts.tasks.spawn("restart hook of a plugin", self._start_hook())
        return process

    async def _start_hook(self) -> None:
        await self._on_restart()

    async def _start(self) -> PluginProcess:
        self.parts.check_room(self.plugin)
        self._is_starting = True
        try:
            return await self._started()
        finally:
            self._is_starting = False

    async def _started(self) -> PluginProcess:
        parts = self.parts
        self.questions = PluginQuestions(self.plugin, parts.answering)
        listener = _Listener(self.questions, self._handle_notice)
        secret = {PLUGIN_SECRET_VARIABLE: parts.answering.host().secret_key}
        bounds = parts.options.process
        bounds = replace(bounds, environment={**bounds.environment, **secret})
        process = PluginProcess(self.plugin, bounds, listener, parts.tasks)
        self._pause.start()
        async with AsyncExitStack() as undo:
            undo.push_async_callback(process.close)
            try:
                await process.start()
                seconds = parts.options.load_seconds + START_SECONDS
                answer = await process.ask({"do": "load"}, PipeData(self._opening()), seconds)
            except PluginError:
                raise
            except GatewayError as error:
                raise make_failure(self.plugin, error.message) from error
            self._use_loaded(process, answer.value)
            if self._is_over:
                raise make_failure(self.plugin, "it was ended")
            undo.pop_all()
        process.watch()
        self.process = process
        return process

    def _opening(self) -> dict[str, Any]:
        options, host = self.parts.options, self.parts.answering.host()
        return {
            "plugin": render_plugin(self.plugin),
            "host": {"data_dir": str(host.data_dir), "secret_key": host.secret_key},
            "packages": None if options.packages is None else str(options.packages),
            "not_installed": self._not_installed,
            "seconds": options.load_seconds,
            "level": logging.getLogger("gatewayd.plugins").getEffectiveLevel(),
            "debug_loggers": [name for name in options.debug_loggers if name],
        }

    def _use_loaded(self, process: PluginProcess, found: Any) -> None:
        try:
            kind, missing = (
                PluginKind(found["kind"]),
                tuple(str(name) for name in found["missing"][:MAX_METHODS]),
            )
            specs = [dict(spec) for spec in found["specs"][:MAX_METHODS]]
        except MALFORMED_ERRORS as error:
            raise process.spoil(error) from error
        self.plugin = replace(
            self.plugin,
            kind=kind,
            manifest=frontmatter.parse_frontmatter(self.plugin.content),
            specs=specs,
            missing=missing,
        )

    def note(self, doing: str, sentence: str) -> None:
        """Record a problem, at most ten in a second, since each is written to the database."""
        now = time.monotonic()
        noted = max(self._last_noted, now - 1.0) + NOTE_INTERVAL_SECONDS
        if noted <= now:
            self._last_noted = noted
            self._recorder(self.plugin, doing, sentence)

    def _handle_notice(self, header: Mapping[str, Any], payload: PipeData) -> None:
        value = payload.value
        match header["tell"]:
            case "facts":
                self.facts = read_facts(value)
            case "note":
                self.note(read_line(value["doing"]), read_line(value["sentence"]))
            case "log":
                fields = {
                    name: read_line(value["fields"][name])
                    for name in LOGGED_FIELDS
                    if name in value["fields"]
                }
                level = max((known for known in LEVELS if known <= value["level"]), default=logging.DEBUG)
                own = {**fields, **log_fields(self.plugin.family, self.plugin.id)}
                # The log level of a line depends on the name of its logger, not of this one.
                name = _logger_of(read_line(value["logger"]))
                message = read_line(value["message"])
                log.handle(log.makeRecord(name, level, "", 0, "%s", (message,), None, extra=own))
            case other:
                raise ValueError(f"unknown notice {str(other)[:40]!r}")


def _logger_of(value: str) -> str:
    """Return the logger name for a line of a process, which may not use loggers of the gateway."""
    name = NON_LOGGER_CHARACTERS.sub("_", value)
    is_gateway = name.partition(".")[0] == GATEWAY_LOGGER and not name.startswith(
        f"{GATEWAY_LOGGER}.plugins."
    )
    return log.name if is_gateway else name


@dataclass(frozen=True, slots=True)
class _Listener:
    """A `process.ProcessListener` of one process."""

    questions: PluginQuestions
    handle_notice: Callable[[Mapping[str, Any], PipeData], None]

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        return await self.questions.answer(asked, payload)

    async def drop(self, answer: PipeData) -> None:
        await self.questions.drop(answer)

    def hear(self, header: Mapping[str, Any], payload: PipeData) -> None:
        self.handle_notice(header, payload)


def read_line(value: Any) -> str:
    """Return a short text of a message; ValueError for any other value."""
    if not isinstance(value, str) or len(value) > MAX_ERROR_CHARACTERS:
        raise ValueError("expected a short text")
    return value
