"""`gatewayctl function valves` and `gatewayctl tool valves`: what is set in a plugin."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from gatewayctl.command import DryRun, Noun, Session, describe
from gatewayctl.commands.plugins.common import MAX_CELL_CHARS, PluginId, add
from gatewayctl.prompts import is_in_file, read_text, usage
from gatewayctl.render import Output, View
from gatewayctl.sanitize import begun
from gatewayctl.values import parse_pairs, read_object
from gatewayctl.wire import routes
from gatewayctl.wire.plugins import Valve, ValveChange, ValvesWritten


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _state(row: Valve) -> str:
    if not row.known:
        return "unknown"
    if row.is_set:
        return "set"
    return "required" if row.required else "default"


ROWS: View[Valve] = View(
    name=lambda row: row.name,
    columns={
        "VALVE": lambda row: row.name,
        "VALUE": lambda row: begun(_shown(row.value), MAX_CELL_CHARS),
        "STATE": _state,
        "TYPE": lambda row: row.type,
        "DESCRIPTION": lambda row: begun(row.description, MAX_CELL_CHARS),
    },
)
WRITTEN: View[ValvesWritten] = View(name=lambda _: "valves", columns={})


def make_noun(family: str) -> Noun:
    """Return the noun below a family."""
    noun = Noun(f"Valves: what an administrator sets in a {family}.")
    path = " valves"
    add(noun, family, "get", get, ("get hello", "get hello --schema"), path)
    add(
        noun,
        family,
        "set",
        set_valves,
        ("set hello limit=20 api_key=@/etc/keys/hello", "set hello --json valves.json"),
        path,
    )
    add(noun, family, "unset", unset, ("unset hello limit",), path)
    return noun


def get(
    family: str,
    session: Session,
    plugin: PluginId,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of the valves instead.")
    ] = False,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show the values of secrets.")] = False,
) -> None:
    """Show what is set in a {family}, and the defaults of the rest; secrets are masked.

    A valve counts as a secret when its schema says so, or its name does.
    """
    found = session.client.call(routes.GET_VALVES, family, plugin, reveal=reveal)
    if found.problem is not None:
        session.note(f"Only what was set can be shown: {found.problem}")
    if schema:
        _show_schema(session, found.fields or {})
        return
    session.show_all(found.valves, ROWS)


def set_valves(
    family: str,
    session: Session,
    plugin: PluginId,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALVE=VALUE",
            help="Valve and its new value; VALVE=@FILE reads a file, @- standard input.",
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON object of values by valve name; - reads standard input."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Set valves of a {family}; all of them or none. They are in force at once.

    Lists and objects are given as JSON. Secrets come from a file or standard input.
    """
    if not pairs and document is None:
        raise usage("cannot tell what to set: give VALVE=VALUE or --json", param="VALVE=VALUE")
    values = {} if document is None else read_object(document, "--json")
    given = parse_pairs(pairs or [])
    _refuse_secrets(session, family, plugin, [name for name, text in given.items() if not is_in_file(text)])
    texts = {name: read_text(text, name) for name, text in given.items()}
    _write(session, family, plugin, ValveChange(values=values, texts=texts), dry_run=dry_run)


def unset(
    family: str,
    session: Session,
    plugin: PluginId,
    names: Annotated[list[str], typer.Argument(metavar="VALVE", help="Names of the valves.")],
    dry_run: DryRun = False,
) -> None:
    """Return valves of a {family} to their defaults."""
    _write(session, family, plugin, ValveChange(unset=names), dry_run=dry_run)


def _refuse_secrets(session: Session, family: str, plugin_id: str, names: Sequence[str]) -> None:
    """Raise usage for secrets that stand on the command line, where others see them."""
    if not names:
        return
    secret = {
        row.name for row in session.client.call(routes.GET_VALVES, family, plugin_id).valves if row.secret
    }
    for name in names:
        if name in secret:
            raise usage(f"cannot take the secret {name} as an argument: give {name}=@FILE", param=name)


def _write(session: Session, family: str, plugin_id: str, request: ValveChange, *, dry_run: bool) -> None:
    row = session.client.call(routes.SET_VALVES, family, plugin_id, body=request, dry_run=dry_run)
    named = {*request.values, *request.texts, *request.unset}
    if session.output is Output.NAME:
        session.show_all([valve for valve in row.valves if valve.name in named], ROWS)
        return
    if session.output is not Output.TABLE:
        session.show(row, WRITTEN)
        return
    word = describe(row.outcome, dry_run=row.dry_run)
    for valve in row.valves:
        if valve.name in named:
            session.renderer.say(f"{word} {valve.name}={_shown(valve.value)}")
    for name in sorted(named - {valve.name for valve in row.valves}):
        session.renderer.say(f"{word} {name}")


def _show_schema(session: Session, schema: Mapping[str, Any]) -> None:
    if session.output in {Output.JSON, Output.JSONL}:
        session.renderer.json(schema)
        return
    session.renderer.text(json.dumps(schema, ensure_ascii=False, indent=2))
