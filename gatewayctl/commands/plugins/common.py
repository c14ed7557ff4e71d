"""Common parts of `gatewayctl function` and `gatewayctl tool`: all except a few options."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes, describe
from gatewayctl.commands import access_lists as access
from gatewayctl.commands.files import complain, leave
from gatewayctl.completion import completing, plugins
from gatewayctl.failures import CommandError
from gatewayctl.ingest.folder import reason
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import Output, View
from gatewayctl.sanitize import begun
from gatewayctl.wire import routes
from gatewayctl.wire.plugins import (
    Method,
    MissingImport,
    NewPlugin,
    Plugin,
    PluginChange,
    PluginReport,
    PluginSource,
    PluginWritten,
    Reloaded,
)

MAX_CELL_CHARS: Final = 60

# After a failure of one of these kinds the other files are still installed.
OF_THE_FILE: Final = frozenset({"invalid_request", "too_large", "usage", "conflict", "plugin_failed"})

PluginId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the plugin, as list shows it.", autocompletion=completing(plugins)
    ),
]
Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH", help="Python file, or directory for every *.py in it.")
]
WantedId = Annotated[
    str | None, typer.Option("--id", help="Id of the plugin, for one file; from the file name if not given.")
]
WantedName = Annotated[
    str | None, typer.Option("--name", help="Name of the plugin; from the header of the file if not given.")
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="USER", help="Owner of a new plugin; the first administrator if not given."
    ),
]


def _problem(row: Plugin) -> str | None:
    return None if row.problem is None else row.problem.sentence


def _short_problem(row: Plugin) -> str | None:
    return None if row.problem is None else begun(row.problem.sentence, MAX_CELL_CHARS)


def _origin(row: Plugin) -> str:
    return row.path or row.origin


DETAIL: View[Plugin] = View(
    name=lambda row: row.id,
    columns={
        "ID": lambda row: row.id,
        "KIND": lambda row: row.kind,
        "NAME": lambda row: row.name,
        "VERSION": lambda row: row.version,
        "DESCRIPTION": lambda row: row.description,
        "ACTIVE": lambda row: row.is_active,
        "GLOBAL": lambda row: row.is_global,
        "ORIGIN": _origin,
        "USER": lambda row: row.user or row.user_id,
        "METHODS": lambda row: row.methods,
        "REQUIRES": lambda row: row.requirements,
        "MISSING": lambda row: row.missing,
        "PROBLEM": _problem,
        "SINCE": lambda row: None if row.problem is None else row.problem.at,
        "LEFT BEHIND": lambda row: row.left_behind,
        "ISOLATION": lambda row: row.isolation,
        "PID": lambda row: row.pid,
        "MEMORY": lambda row: row.memory,
        "ACCESS": lambda row: access.shown(row.grants),
        "UPDATED": lambda row: row.updated_at,
        "CREATED": lambda row: row.created_at,
    },
)
FUNCTIONS: View[Plugin] = View(
    name=DETAIL.name,
    columns={
        "ID": lambda row: row.id,
        "KIND": lambda row: row.kind,
        "NAME": lambda row: begun(row.name, MAX_CELL_CHARS),
        "ACTIVE": lambda row: row.is_active,
        "GLOBAL": lambda row: row.is_global,
        "ORIGIN": lambda row: row.origin,
        "PROBLEM": _short_problem,
    },
)
TOOLS: View[Plugin] = View(
    name=DETAIL.name,
    columns={
        "ID": lambda row: row.id,
        "NAME": lambda row: begun(row.name, MAX_CELL_CHARS),
        "METHODS": lambda row: begun(", ".join(row.methods), MAX_CELL_CHARS),
        "USER": lambda row: row.user or row.user_id,
        "ACTIVE": lambda row: row.is_active,
        "ORIGIN": lambda row: row.origin,
        "PROBLEM": _short_problem,
    },
)
WRITTEN: View[PluginWritten] = View(name=lambda row: row.id, columns={})
RELOADED: View[Reloaded] = View(
    name=lambda row: "failed" if row.failed else "reloaded",
    columns={
        "LOADED": lambda row: row.loaded,
        "FAILED": lambda row: list(row.failed.values()),
        "REMOVED": lambda row: row.removed,
        "UNCHANGED": lambda row: row.unchanged,
    },
)


def _signature(method: Method) -> str:
    given = ", ".join(one.name if one.required else f"{one.name}=" for one in method.parameters)
    return f"{method.name}({given})"


def _missing(one: MissingImport) -> str:
    """Return the missing module of an import, with the requirement that provides it."""
    notes = [note for note in (one.requirement, "guarded" if one.guarded else "") if note]
    return f"{one.name} ({', '.join(notes)})" if notes else one.name


REPORT: View[PluginReport] = View(
    name=lambda row: "loads" if row.loads else "fails",
    columns={
        "ID": lambda row: row.id,
        "KIND": lambda row: row.kind,
        "NAME": lambda row: row.name,
        "VERSION": lambda row: row.version,
        "LOADS": lambda row: row.loads,
        "ERROR": lambda row: row.error,
        "METHODS": lambda row: [_signature(method) for method in row.methods],
        "MISSING": lambda row: [_missing(one) for one in row.missing],
        "EVENTS": lambda row: [f"{one.type}{'' if one.known else ' (unknown)'}" for one in row.events],
        "VALVES": lambda row: [one.name for one in row.valves],
        "USER VALVES": lambda row: [one.name for one in row.user_valves],
        "REQUIRES": lambda row: [
            f"{one.requirement} ({one.version or 'absent'})" for one in row.requirements
        ],
        "PROBLEMS": lambda row: "; ".join(row.problems),
    },
)
REPORTS: View[PluginReport] = View(
    name=lambda row: row.id,
    columns={
        "ID": lambda row: row.id,
        "KIND": lambda row: row.kind,
        "LOADS": lambda row: row.loads,
        "PROBLEMS": lambda row: begun(row.error or "; ".join(row.problems), MAX_CELL_CHARS),
    },
)


@dataclass(frozen=True, slots=True)
class PluginInstallation:
    """Options of the command line for plugins to install."""

    plugin_id: str | None = None
    name: str | None = None
    user: str | None = None
    is_active: bool | None = None
    is_global: bool | None = None


class PluginBatch:
    """Installs sources one after the other, and reports failed ones."""

    def __init__(self, session: Session, family: str, wanted: PluginInstallation, *, dry_run: bool) -> None:
        self._session = session
        self._family = family
        self._wanted = wanted
        self._dry_run = dry_run

    def run(self, paths: Sequence[Path]) -> None:
        """Install all, and exit with 1 if one failed; the failure of a single one is raised."""
        wanted, files = self._wanted, list(sources(paths))
        is_alone = len(paths) == 1 and files == list(paths)
        if len(files) > 1 and (wanted.plugin_id or wanted.name):
            raise usage("cannot give one id or name to several files", param="--id")
        rows: list[PluginWritten] = []
        for path in files:
            try:
                rows.append(self._install(path))
            except CommandError as failure:
                if is_alone or failure.kind not in OF_THE_FILE:
                    raise
                complain(self._session, str(path), failure)
        _show_written(self._session, self._family, rows, is_alone=is_alone)
        leave(len(rows) < len(files))

    def _install(self, path: Path) -> PluginWritten:
        given = {
            "name": self._wanted.name,
            "user": self._wanted.user,
            "is_active": self._wanted.is_active,
            "is_global": self._wanted.is_global,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        request = NewPlugin.model_validate({"content": read_source(path), **chosen})
        plugin_id = self._wanted.plugin_id or id_of(path)
        return self._session.client.call(
            routes.INSTALL_PLUGIN, self._family, plugin_id, body=request, dry_run=self._dry_run
        )


def register(noun: Noun, family: str) -> None:
    """Add the verbs of both nouns; `{family}` in their texts stands for the noun."""
    rows: Sequence[tuple[str, Callable[..., None], Sequence[str]]] = (
        ("show", show, ("show hello", "show hello --source > hello.py")),
        ("check", check, ("check hello.py", "check plugins -o json")),
        ("remove", remove, ("remove hello --yes",)),
        ("reload", reload, ("reload",)),
    )
    for name, function, examples in rows:
        add(noun, family, name, function, examples)


def add(
    noun: Noun, family: str, name: str, function: Callable[..., None], examples: Sequence[str], path: str = ""
) -> None:
    """Add a verb; its function takes the family before the session."""
    bound: Any = partial(function, family)
    bound.__name__ = function.__name__
    bound.__doc__ = (function.__doc__ or "").replace("{family}", family)
    noun.verb(name, *(f"gatewayctl {family}{path} {example}" for example in examples))(bound)


def show(
    family: str,
    session: Session,
    plugin: PluginId,
    source: Annotated[bool, typer.Option("--source", help="Print the source of the plugin.")] = False,
) -> None:
    """Show one {family}, with its last problem and where it lives.

    For a {family} in a running process of its own it shows the process id and the memory in bytes.
    """
    row = session.client.call(routes.GET_PLUGIN, family, plugin, source=source)
    if source and session.output is Output.TABLE:
        session.renderer.text(row.content or "")
        return
    session.show(row, DETAIL)


def check(family: str, session: Session, paths: Paths, plugin_id: WantedId = None) -> None:
    """Load a {family} in a process of its own, tell what it is and needs, and keep nothing.

    Told are its kind, the parameters of its methods, imports that find nothing, the events that stand in it,
    valves, requirements, and what will not work. Exits with 1 when it would not load.
    """
    files = list(sources(paths))
    if plugin_id is not None and len(files) > 1:
        raise usage("cannot give one id to several files", param="--id")
    rows = [
        session.client.call(
            routes.CHECK_PLUGIN,
            family,
            body=PluginSource(id=plugin_id or id_of(path), content=read_source(path)),
        )
        for path in files
    ]
    if len(rows) == 1 and list(paths) == files:
        session.show(rows[0], REPORT)
    else:
        session.show_all(rows, REPORTS)
    leave(not all(row.loads for row in rows))


def remove(
    family: str, session: Session, plugin: PluginId, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Delete a {family} with its valves, those that users have set included."""
    confirm(f"Remove the {family} {plugin}?", yes=yes or dry_run)
    session.written(
        session.client.call(routes.REMOVE_PLUGIN, family, plugin, dry_run=dry_run), WRITTEN, family
    )


def reload(family: str, session: Session) -> None:
    """Read functions, tools and the directory of plugins again; load what has changed or failed before.

    Exits with 1 when one does not load.
    """
    row = session.client.call(routes.RELOAD_PLUGINS)
    session.show(row, RELOADED)
    leave(bool(row.failed))


def switch(session: Session, family: str, plugin_id: str, request: PluginChange, *, dry_run: bool) -> None:
    """Switch a plugin, and exit with 1 if it is on and does not load."""
    row = session.client.call(routes.CHANGE_PLUGIN, family, plugin_id, body=request, dry_run=dry_run)
    session.written(row, WRITTEN, family)
    is_failing = row.is_active and row.problem is not None and row.problem.doing == "load" and not dry_run
    if is_failing and row.problem is not None:
        session.note(f"It is on, but does not load: {row.problem.sentence}")
    leave(is_failing)


def sources(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the given files, and those of given directories by name."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(file for file in path.glob("*.py") if not file.name.startswith((".", "_")))
        if not found:
            raise usage(f"cannot find a plugin in {path}: there is no *.py file", param="PATH")
        yield from found


def read_source(path: Path) -> str:
    """Return the source in a file."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise usage(f"cannot read {path}: {reason(error)}", param="PATH") from error
    except UnicodeDecodeError as error:
        raise usage(f"cannot read {path}: it is not UTF-8 text", param="PATH") from error


def id_of(path: Path) -> str:
    """Return the id for the name of a file: characters that ids cannot contain become underscores."""
    return re.sub(r"\W", "_", path.stem).lower()


def _show_written(session: Session, family: str, rows: Sequence[PluginWritten], *, is_alone: bool) -> None:
    """Show the installed plugins: a sentence each for people, one object or a list for programs."""
    if session.output is Output.TABLE:
        for row in rows:
            what = row.kind if row.kind == family else f"{row.kind} {family}"
            session.renderer.say(f"{describe(row.outcome, dry_run=row.dry_run)} {what} {row.id}")
    elif is_alone:
        session.show(rows[0], WRITTEN)
    else:
        session.show_all(rows, WRITTEN)
