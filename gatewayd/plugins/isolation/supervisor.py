"""Keeps the process of one plugin: starts it, starts it again when it has ended, and ends it."""

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
from gatewayd.plugins.isolation.cached_facts import MAX_METHODS, PluginFacts, read_facts
from gatewayd.plugins.isolation.calls import render_plugin
from gatewayd.plugins.isolation.host_calls import PluginQuestions, QuestionParts
from gatewayd.plugins.isolation.messages import LOGGED_FIELDS, MAX_ERROR_CHARACTERS, PipeData
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
"""The variable by which plugins know their secret, which is derived from that of the gateway."""
NOTE_INTERVAL_SECONDS: Final = 0.1
"""Between two problems that are kept, beside the first ten."""
START_SECONDS: Final = 20.0
"""For a process to start and to tell, beyond the time that a source has to load."""


@dataclass(frozen=True, slots=True)
class IsolationOptions:
    """How processes are run: what they may take, and what the code in them finds.

    `packages` is the folder of the packages that were installed for plugins, `load_seconds` the time that a
    source has to load, `debug_loggers` what `loglevels.LibraryDebug` takes.
    """

    process: ProcessOptions
    packages: Path | None
    load_seconds: float
    debug_loggers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class IsolationParts:
    """What processes are started with; `check_room` raises PluginError when there are too many."""

    answering: QuestionParts
    options: IsolationOptions
    tasks: TaskRegistry
    check_room: Callable[[Plugin], None]


class ProcessKeeper:
    """The process of a plugin, and what it last told of itself.

    `on_again` is awaited in a task of its own when a process has taken the place of one that had ended.
    `not_installed` is why packages that the plugin requires were not installed.
    """

    def __init__(
        self,
        plugin: Plugin,
        parts: IsolationParts,
        noting: ProblemRecorder,
        on_again: Callable[[], Awaitable[None]],
        not_installed: str = "",
    ) -> None:
        self.plugin = plugin
        self.parts = parts
        self.facts = PluginFacts()
        self.questions = PluginQuestions(plugin, parts.answering)
        self.process: PluginProcess | None = None
        self._noting = noting
        self._on_again = on_again
        self._not_installed = not_installed
        self._starting = asyncio.Lock()
        self._pause = StartPause()
        self._is_over = False
        self._is_starting = False
        self._noted = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.is_alive

    @property
    def has_place(self) -> bool:
        """Whether it counts among the processes: its own runs or starts."""
        return self._is_starting or self.is_alive

    async def start(self) -> None:
        """Start the process and load the plugin in it; PluginError when that fails."""
        async with self._starting:
            await self._start()

    async def take(self, plugin: Plugin) -> None:
        """Go on with another record of the same source, whose valves are new."""
        async with self._starting:
            self.plugin = plugin
            if self.process is None or not self.process.is_alive:
                return
            try:
                await self.process.ask({"do": "take"}, PipeData(plugin.valves))
            except PluginError as failure:
                self.note("valves", failure.message)

    async def end(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound of the end
        """Run `on_shutdown`, and end the process whatever runs in it."""
        self._is_over = True
        process = self.process
        if process is None:
            return
        try:
            if process.is_alive:
                await process.ask({"do": "end"}, seconds=timeout)
        except GatewayError as failure:
            log.warning(
                "a plugin does not end: %s",
                failure.message,
                extra=log_fields(self.plugin.family, self.plugin.id),
            )
        await self.questions.close()
        await process.close()

    async def ready(self) -> PluginProcess:
        """Return the process, started again when it has ended."""
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
            often = f"its process ended {self._pause.ended} times"
            raise make_failure(self.plugin, f"{often}; it is started again in {math.ceil(left)} s")
        try:
            process = await self._start()
        except GatewayError:
            self._pause.end()
            raise
        self.parts.tasks.spawn("start a plugin again", self._start_hook())
        return process

    async def _start_hook(self) -> None:
        await self._on_again()

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
        listener = _Listener(self.questions, self._hear)
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
            self._take_found(process, answer.value)
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

    def _take_found(self, process: PluginProcess, found: Any) -> None:
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
        """Keep a problem, a few in a second: each is written to the database."""
        now = time.monotonic()
        noted = max(self._noted, now - 1.0) + NOTE_INTERVAL_SECONDS
        if noted <= now:
            self._noted = noted
            self._noting(self.plugin, doing, sentence)

    def _hear(self, said: Mapping[str, Any], payload: PipeData) -> None:
        told = payload.value
        match said["tell"]:
            case "facts":
                self.facts = read_facts(told)
            case "note":
                self.note(read_line(told["doing"]), read_line(told["sentence"]))
            case "log":
                fields = {
                    name: read_line(told["fields"][name]) for name in LOGGED_FIELDS if name in told["fields"]
                }
                level = max((known for known in LEVELS if known <= told["level"]), default=logging.DEBUG)
                own = {**fields, **log_fields(self.plugin.family, self.plugin.id)}
                # What is written of a logger is decided by its name, not by that of this one.
                name = _logger_of(read_line(told["logger"]))
                message = read_line(told["message"])
                log.handle(log.makeRecord(name, level, "", 0, "%s", (message,), None, extra=own))
            case other:
                raise ValueError(f"it tells {str(other)[:40]!r}")


def _logger_of(told: str) -> str:
    """Return the name of a logger that a process writes to; those of the gateway itself are not its."""
    name = NON_LOGGER_CHARACTERS.sub("_", told)
    is_gateway = name.partition(".")[0] == GATEWAY_LOGGER and not name.startswith(
        f"{GATEWAY_LOGGER}.plugins."
    )
    return log.name if is_gateway else name


@dataclass(frozen=True, slots=True)
class _Listener:
    """A `process.ProcessListener` of one process."""

    questions: PluginQuestions
    hearing: Callable[[Mapping[str, Any], PipeData], None]

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        return await self.questions.answer(asked, payload)

    async def drop(self, answer: PipeData) -> None:
        await self.questions.drop(answer)

    def hear(self, said: Mapping[str, Any], payload: PipeData) -> None:
        self.hearing(said, payload)


def read_line(value: Any) -> str:
    """Return a short text that a process told; ValueError for anything else."""
    if not isinstance(value, str) or len(value) > MAX_ERROR_CHARACTERS:
        raise ValueError("a short text is expected")
    return value
