"""Loads one source in its own process and reports what it found; `python -m gatewayd.plugins.source.check`.

A question comes on standard input and a report goes to standard output, both as JSON (`gatewayd.plugins.
reports`). The import names of plugins are there, but no gateway behind them.
"""

import asyncio
import importlib
import importlib.metadata
import inspect
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import orjson
from pydantic import TypeAdapter

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.events.table import find_type
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.isolation.loader import IsolationChoice
from gatewayd.plugins.open_webui import finder
from gatewayd.plugins.open_webui.manifest import PACKAGE
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.runtime.arguments import CallServices, reserved_arguments
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.instance import PluginInstance
from gatewayd.plugins.runtime.loader import LoadingOptions, PluginLoader
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.check_report import (
    MissingImport,
    ReportedEvent,
    ReportedMethod,
    ReportedParameter,
    ReportedRequirement,
    SourceCheckReport,
    SourceCheckRequest,
)
from gatewayd.plugins.source.packages import choose_requirements, find_unmet, missing_part
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from gatewayd.plugins.source.static_analysis import ImportedName, SourceOutline, read_outline

ALARM_MARGIN_SECONDS: Final = 30
"""Seconds after which the process ends, beyond the time that the source has to load."""

ENTRY_METHODS: Final[Mapping[PluginKind, Mapping[str, frozenset[str]]]] = {
    PluginKind.PIPE: {"pipe": frozenset({"body"})},
    PluginKind.FILTER: {
        "inlet": frozenset({"body"}),
        "stream": frozenset({"event"}),
        "outlet": frozenset({"body"}),
    },
    PluginKind.ACTION: {"action": frozenset({"body"})},
}
"""The methods that make a function of each kind work, one of them at least, and what each is given."""

OPTIONAL_METHODS: Final = ("pipes", "on_startup", "on_shutdown", "on_valves_updated")

_DISTRIBUTION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ASKED: Final = TypeAdapter(SourceCheckRequest)


class _Nobody:
    """A part of the gateway that is not there: every method refuses."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, f"cannot answer {name}: no gateway runs while it is checked"
            )

        return refuse


@dataclass(frozen=True, slots=True)
class _Settings:
    """A `plugins.interfaces.HostSettings` over given values."""

    values: Mapping[str, Any]

    async def get(self, name: str) -> Any:
        return self.values.get(name)

    async def all(self) -> Mapping[str, Any]:
        return self.values


def make_host(settings: Mapping[str, Any], directory: Path) -> PluginHost:
    """Return a host that knows settings and nothing else."""
    nobody = cast(Any, _Nobody())
    return PluginHost(
        users=nobody,
        chats=nobody,
        files=nobody,
        models=nobody,
        completions=nobody,
        plugins=nobody,
        knowledge=nobody,
        settings=_Settings(settings),
        data_dir=directory,
        secret_key=os.urandom(16).hex(),
    )


async def inspect_source(question: SourceCheckRequest) -> SourceCheckReport:
    """Load a source here and return everything that can be told of it."""
    manifest = frontmatter.parse_frontmatter(question.content)
    report = SourceCheckReport(
        id=question.id,
        name=manifest.get("title") or question.id,
        version=manifest.get("version", ""),
        requirements=tuple(_requirement(item) for item in frontmatter.read_requirements(manifest)),
    )
    try:
        outline = read_outline(question.content)
        family, kind = _kind(question)
        plugin_id = source_code.check_id(question.id)
    except GatewayError as error:
        return replace(report, error=error.message)
    report = replace(report, id=plugin_id, family=family.value, kind=kind.value, events=_events(outline))
    plugin = Plugin(plugin_id, family, kind, "", report.name, question.content, manifest=manifest)
    with tempfile.TemporaryDirectory(prefix="gatewayd-check-") as folder:
        host = make_host(question.settings, Path(folder))
        names = finder.install(host, asyncio.get_running_loop())
        try:
            return await _loaded(report, plugin, outline, question, Path(folder) / "packages")
        finally:
            names.close()


async def _loaded(
    report: SourceCheckReport,
    plugin: Plugin,
    outline: SourceOutline,
    question: SourceCheckRequest,
    packages: Path,
) -> SourceCheckReport:
    """Load a plugin as the gateway does; what has to be installed for it goes to `packages`."""
    nobody = cast(Any, _Nobody())
    around = CallServices(asyncio.get_running_loop(), nobody, nobody)
    installs = question.packages is not None
    # The header has to name a mode whatever the settings choose.
    choice = IsolationChoice()
    requirements = RequirementsInstaller(
        InstallationOptions(packages, installs, question.pip_options, question.pip_timeout)
    )
    loader = PluginLoader(around, LoadingOptions(requirements, question.timeout))
    requirements.open()
    with closing(requirements):
        try:
            choice.of(plugin)
            loaded = await loader.load(plugin, lambda *_: None)
        except GatewayError as error:
            return replace(report, error=error.message, missing=await _missing(plugin, outline))
        return replace(
            report,
            kind=loaded.plugin.kind.value,
            methods=tuple(_methods(loaded)),
            missing=await _missing(plugin, outline),
            valves=await loaded.valves_schema(),
            user_valves=await loaded.user_valves_schema(),
            problems=(*_entry_problems(loaded, around), *await _valve_problems(loaded)),
        )


def _kind(question: SourceCheckRequest) -> tuple[PluginFamily, PluginKind]:
    if question.family is None:
        return source_code.detect_kind(question.content)
    family = PluginFamily(question.family)
    return family, source_code.guess_kind(question.content, family)


def _events(outline: SourceOutline) -> tuple[ReportedEvent, ...]:
    return tuple(ReportedEvent(name, find_type(name) is not None) for name in outline.events)


def _requirement(text: str) -> ReportedRequirement:
    match = _DISTRIBUTION.match(text)
    try:
        return ReportedRequirement(text, importlib.metadata.version(match[0]) if match else None)
    except importlib.metadata.PackageNotFoundError:
        return ReportedRequirement(text, None)


async def _missing(plugin: Plugin, outline: SourceOutline) -> tuple[MissingImport, ...]:
    # In a thread: names of settings are asked for on this loop.
    absent = [(one, name) for one in outline.imports if (name := await asyncio.to_thread(_absent, one))]
    guarded: dict[str, bool] = {}
    for one, name in absent:
        guarded[name] = guarded.get(name, True) and one.guarded
    unmet = find_unmet(frontmatter.read_requirements(plugin.manifest)) if absent else ()
    return tuple(
        MissingImport(name, is_guarded, ", ".join(choose_requirements(name, unmet)))
        for name, is_guarded in guarded.items()
    )


def _absent(wanted: ImportedName) -> str:
    """Return the name of what an import does not find, "" when it finds everything."""
    if wanted.package != PACKAGE:
        return missing_part(wanted.full)
    try:
        module = importlib.import_module(wanted.module)
        if wanted.name and not hasattr(module, wanted.name):
            importlib.import_module(wanted.full)
    except (ImportError, ValueError):
        return wanted.full
    return ""


def _methods(loaded: PluginInstance) -> Iterator[ReportedMethod]:
    names = loaded.methods()
    if loaded.plugin.family is PluginFamily.FUNCTION:
        entries = (*ENTRY_METHODS[loaded.plugin.kind], *OPTIONAL_METHODS)
        names = [name for name in entries if loaded.has(name)]
    for name in names:
        yield ReportedMethod(name, tuple(_parameters(loaded.value(name))))


def _parameters(function: Callable[..., Any]) -> Iterator[ReportedParameter]:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return
    for one in signature.parameters.values():
        if one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            yield ReportedParameter(one.name, one.default is inspect.Parameter.empty)


def _entry_problems(loaded: PluginInstance, around: CallServices) -> Iterator[str]:
    """Yield what keeps the methods from being called."""
    if loaded.plugin.family is PluginFamily.TOOL:
        if not loaded.methods():
            yield "it has no public method: models have nothing to call"
        return
    entries = ENTRY_METHODS[loaded.plugin.kind]
    present = [name for name in entries if loaded.has(name)]
    if not present and not loaded.has("pipes"):
        yield f"it has no method {' or '.join(entries)}: nothing of it is ever called"
    for name in present:
        taken = loaded.parameters(name)
        unknown = taken.names - taken.with_defaults - entries[name] - _reserved(taken.names, around)
        if unknown:
            yield f"{name} requires {', '.join(sorted(unknown))}, which nothing gives it"


def _reserved(names: frozenset[str], around: CallServices) -> set[str]:
    user = User(id="", email="", name="", role=Role.USER)
    scope = CallScope(Actor(user, CredentialKind.CONTROL, (), {}), EventTarget("", "", "", ""))
    return {*reserved_arguments(names, "", scope, around), "__valves__"}


async def _valve_problems(loaded: PluginInstance) -> Sequence[str]:
    if loaded.value("Valves") is None:
        return ()
    try:
        await loaded.changed_valves({}, {})
    except GatewayError as error:
        return (f"its valves have to be set before it works: {error.message}",)
    return ()


def main() -> None:
    """Answer one question; the process ends then, whatever threads the source has started."""
    report_to = os.dup(sys.stdout.fileno())
    # What the source prints is no part of the report.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    question = _ASKED.validate_json(sys.stdin.buffer.read())
    signal.alarm(int(question.timeout + question.pip_timeout) + ALARM_MARGIN_SECONDS)
    if question.packages is not None:
        sys.path.append(question.packages)
    report = asyncio.run(inspect_source(question))
    with os.fdopen(report_to, "wb") as stream:
        stream.write(orjson.dumps(report, default=str))
    os._exit(0)


if __name__ == "__main__":
    main()
