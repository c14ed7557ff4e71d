"""Main module of a check process, which loads one source: `python -m gatewayd.plugins.source.check`.

It reads a request from standard input and writes a report to standard output, both as JSON (`check_report`).
The `open_webui` modules can be imported, but their host refuses all calls except reads of settings.
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
from gatewayd.events.event_types import find_type
from gatewayd.events.records import EventTarget
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
"""Seconds after which the process is killed, in addition to the time limits of loading."""

ENTRY_METHODS: Final[Mapping[PluginKind, Mapping[str, frozenset[str]]]] = {
    PluginKind.PIPE: {"pipe": frozenset({"body"})},
    PluginKind.FILTER: {
        "inlet": frozenset({"body"}),
        "stream": frozenset({"event"}),
        "outlet": frozenset({"body"}),
    },
    PluginKind.ACTION: {"action": frozenset({"body"})},
}
"""Entry methods by kind, of which a function needs at least one, and their arguments."""

OPTIONAL_METHODS: Final = ("pipes", "on_startup", "on_shutdown", "on_valves_updated")

_DISTRIBUTION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REQUEST: Final = TypeAdapter(SourceCheckRequest)


class _AbsentPart:
    """A part of the host whose methods all raise unavailable."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot call {name}: no gateway runs during a check")

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
    """Return a host that only has settings."""
    absent = cast(Any, _AbsentPart())
    return PluginHost(
        users=absent,
        chats=absent,
        files=absent,
        models=absent,
        completions=absent,
        plugins=absent,
        knowledge=absent,
        settings=_Settings(settings),
        data_dir=directory,
        secret_key=os.urandom(16).hex(),
    )


async def inspect_source(request: SourceCheckRequest) -> SourceCheckReport:
    """Load a source in this process and return the report."""
    manifest = frontmatter.parse_frontmatter(request.content)
    report = SourceCheckReport(
        id=request.id,
        name=manifest.get("title") or request.id,
        version=manifest.get("version", ""),
        requirements=tuple(_requirement(item) for item in frontmatter.read_requirements(manifest)),
    )
    try:
        outline = read_outline(request.content)
        family, kind = _kind(request)
        plugin_id = source_code.check_id(request.id)
    except GatewayError as error:
        return replace(report, error=error.message)
    report = replace(report, id=plugin_id, family=family.value, kind=kind.value, events=_events(outline))
    plugin = Plugin(plugin_id, family, kind, "", report.name, request.content, manifest=manifest)
    with tempfile.TemporaryDirectory(prefix="gatewayd-check-") as folder:
        host = make_host(request.settings, Path(folder))
        names = finder.install(host, asyncio.get_running_loop())
        try:
            return await _loaded(report, plugin, outline, request, Path(folder) / "packages")
        finally:
            names.close()


async def _refused_valves(loaded: PluginInstance, values: Mapping[str, Any] | None) -> GatewayError | None:
    """Return the error of a plugin that does not accept these valves, None for one that does."""
    if not values:
        return None
    try:
        await loaded.changed_valves({}, values)
    except GatewayError as error:
        return error
    return None


async def _loaded(
    report: SourceCheckReport,
    plugin: Plugin,
    outline: SourceOutline,
    request: SourceCheckRequest,
    packages: Path,
) -> SourceCheckReport:
    """Load a plugin as the gateway does; missing requirements are installed into `packages`."""
    absent = cast(Any, _AbsentPart())
    services = CallServices(asyncio.get_running_loop(), absent, absent)
    installs = request.packages is not None
    # Whatever the settings, the header must not name an unknown isolation mode.
    choice = IsolationChoice()
    requirements = RequirementsInstaller(
        InstallationOptions(packages, installs, request.pip_options, request.pip_timeout)
    )
    loader = PluginLoader(services, LoadingOptions(requirements, request.timeout))
    requirements.open()
    with closing(requirements):
        try:
            choice.of(plugin)
            loaded = await loader.load(plugin, lambda *_: None)
        except GatewayError as error:
            return replace(report, error=error.message, missing=await _missing(plugin, outline))
        refusal = await _refused_valves(loaded, request.values)
        return replace(
            report,
            values_error=None if refusal is None else refusal.message,
            values_field=None if refusal is None else refusal.param,
            kind=loaded.plugin.kind.value,
            methods=tuple(_methods(loaded)),
            missing=await _missing(plugin, outline),
            valves=await loaded.valves_schema(),
            user_valves=await loaded.user_valves_schema(),
            problems=(*_entry_problems(loaded, services), *await _valve_problems(loaded)),
        )


def _kind(request: SourceCheckRequest) -> tuple[PluginFamily, PluginKind]:
    if request.family is None:
        return source_code.detect_kind(request.content)
    family = PluginFamily(request.family)
    return family, source_code.guess_kind(request.content, family)


def _events(outline: SourceOutline) -> tuple[ReportedEvent, ...]:
    return tuple(ReportedEvent(name, find_type(name) is not None) for name in outline.events)


def _requirement(text: str) -> ReportedRequirement:
    match = _DISTRIBUTION.match(text)
    try:
        return ReportedRequirement(text, importlib.metadata.version(match[0]) if match else None)
    except importlib.metadata.PackageNotFoundError:
        return ReportedRequirement(text, None)


async def _missing(plugin: Plugin, outline: SourceOutline) -> tuple[MissingImport, ...]:
    # In a thread, since reading a setting name blocks on this loop.
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
    """Return the name that an import does not find, "" when it finds all."""
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


def _entry_problems(loaded: PluginInstance, services: CallServices) -> Iterator[str]:
    """Yield the reasons why methods cannot be called."""
    if loaded.plugin.family is PluginFamily.TOOL:
        if not loaded.methods():
            yield "it has no public method that a model could call"
        return
    entries = ENTRY_METHODS[loaded.plugin.kind]
    present = [name for name in entries if loaded.has(name)]
    if not present and not loaded.has("pipes"):
        yield f"it has no method {' or '.join(entries)}, so it is never called"
    for name in present:
        parameters = loaded.parameters(name)
        unknown = (
            parameters.names
            - parameters.with_defaults
            - entries[name]
            - _reserved(parameters.names, services)
        )
        if unknown:
            yield f"{name} requires {', '.join(sorted(unknown))}, which the gateway does not pass"


def _reserved(names: frozenset[str], services: CallServices) -> set[str]:
    user = User(id="", email="", name="", role=Role.USER)
    scope = CallScope(Actor(user, CredentialKind.CONTROL, (), {}), EventTarget("", "", "", ""))
    return {*reserved_arguments(names, "", scope, services), "__valves__"}


async def _valve_problems(loaded: PluginInstance) -> Sequence[str]:
    if loaded.value("Valves") is None:
        return ()
    try:
        await loaded.changed_valves({}, {})
    except GatewayError as error:
        return (f"its valves must be set before it can run: {error.message}",)
    return ()


def main() -> None:
    """Serve one request and end the process, with all threads that the source has started."""
    report_to = os.dup(sys.stdout.fileno())
    # Redirect the output of the source to stderr, apart from the report.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = _REQUEST.validate_json(sys.stdin.buffer.read())
    signal.alarm(int(request.timeout + request.pip_timeout) + ALARM_MARGIN_SECONDS)
    if request.packages is not None:
        sys.path.append(request.packages)
    report = asyncio.run(inspect_source(request))
    with os.fdopen(report_to, "wb") as stream:
        stream.write(orjson.dumps(report, default=str))
    os._exit(0)


if __name__ == "__main__":
    main()
