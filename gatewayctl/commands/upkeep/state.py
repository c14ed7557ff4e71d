"""`gatewayctl state`: the configuration of users, models and plugins as one document."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.prompts import confirm
from gatewayctl.render import Output, View
from gatewayctl.sanitize import as_json
from gatewayctl.state_document import StateFile, join_path, read_state, write_state
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.state import StateApply, StateChange, StateExport, StateFieldChange, StatePlan

noun = Noun("Users, models, plugins and settings as one document that a repository can hold.")

DIFFERENCES: Final = 2
"""Exit code of `state diff` when there are differences."""

MASK: Final = "********"
SIGNS: Final = {"create": "+", "update": "~", "delete": "-", "report": "!"}
WORDS: Final = {"create": "created", "update": "changed", "delete": "deleted"}

EXPORT: View[StateExport] = View(name=lambda _: "state", columns={})
PLAN: View[StatePlan] = View(name=lambda row: row.digest, columns={})
CHANGES: View[StateChange] = View(name=lambda row: row.path, columns={})

Document = Annotated[str, typer.Argument(metavar="FILE", help="Document in TOML, or - for standard input.")]
Prune = Annotated[
    bool,
    typer.Option("--prune", help="Delete the objects that a table of the document does not name."),
]


@noun.verb("export", "gatewayctl state export > state.toml", "gatewayctl state export --table users,groups")
def export(
    session: Session,
    table: Annotated[
        str,
        typer.Option("--table", metavar="TABLES", help="Tables to export, comma separated; all if empty."),
    ] = "",
) -> None:
    """Write the present state as a document in TOML, sorted and without secrets.

    Providers are listed for reading; they are changed in the configuration file or on the page.
    """
    found = session.client.call(routes.EXPORT_STATE, table=table or None)
    if session.output is Output.TABLE:
        sys.stdout.write(write_state(found.document))
        return
    session.show(found, EXPORT)


@noun.verb("diff", "gatewayctl state diff state.toml", "gatewayctl state diff state.toml --prune -o json")
def diff(session: Session, document: Document, prune: Prune = False) -> None:
    """Show what applying a document would change, field by field.

    Exits with 0 without differences and with 2 with differences. The digest at the end names the plan.
    """
    plan = _call(session, read_state(document), prune=prune, dry_run=True)
    _show(session, plan)
    sys.stdout.flush()
    if plan.changes:
        raise typer.Exit(DIFFERENCES)


@noun.verb(
    "apply",
    "gatewayctl state apply state.toml --dry-run",
    "gatewayctl state apply state.toml --prune --yes",
)
def apply(
    session: Session,
    document: Document,
    prune: Prune = False,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="DIGEST", help="Digest of the reviewed plan; any other is refused."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Create, change and with --prune delete objects until the state is that of a document.

    All of the document is checked before the first change. Each change is made as by its own command, with a
    row of the audit log. If the state changes between the plan and the apply, the apply is refused.
    """
    given = read_state(document)
    digest = plan
    if dry_run or plan is None:
        planned = _call(session, given, prune=prune, dry_run=True)
        if dry_run or not _writes(planned):
            _show(session, planned)
            return
        if session.output is Output.TABLE:
            _show(session, planned)
            sys.stdout.flush()
        confirm(f"Apply these {len(_writes(planned))} changes?", yes=yes)
        digest = planned.digest
    done = _call(session, given, prune=prune, dry_run=False, digest=digest)
    if session.output is Output.TABLE:
        session.renderer.say(f"applied: {_count(_writes(done))}")
        return
    _show(session, done)


def _call(
    session: Session, given: StateFile, *, prune: bool, dry_run: bool, digest: str | None = None
) -> StatePlan:
    body = StateApply(document=given.document, prune=prune, plan=digest)
    plan = session.client.call(routes.APPLY_STATE, body=body, dry_run=dry_run)
    for change in plan.changes:
        for each in change.fields:
            if (change.table, change.name, each.name) in given.secrets:
                each.before = None if each.before is None else MASK
                each.after = MASK
    return plan


def _show(session: Session, plan: StatePlan) -> None:
    for note in plan.notes:
        session.note(note)
    match session.output:
        case Output.TABLE:
            session.renderer.text("\n".join(_lines(plan)))
        case Output.NAME:
            session.show_all(plan.changes, CHANGES)
        case Output.JSON | Output.JSONL:
            session.show(plan, PLAN)


def _lines(plan: StatePlan) -> Iterator[str]:
    for change in plan.changes:
        yield f"{SIGNS.get(change.action, '?')} {change.path}"
        for each in change.fields if change.action != "delete" else ():
            yield f"    {_field(change, each)}"
    if not plan.changes:
        yield "nothing to change"
        return
    reports = len(plan.changes) - len(_writes(plan))
    stays = f"; {reports} differences of providers stay" if reports else ""
    yield f"plan: {_count(_writes(plan))}{stays}"
    yield f"digest: {plan.digest}"


def _field(change: StateChange, each: StateFieldChange) -> str:
    name = join_path(*each.name.split(".", 1))
    if change.action == "create":
        return f"{name} = {_value(each.after)}"
    if each.added or each.removed:
        parts = [
            f"{sign}{_value(names)}" for sign, names in (("+", each.added), ("-", each.removed)) if names
        ]
        return f"{name}: {' '.join(parts)}"
    return f"{name}: {_value(each.before)} -> {_value(each.after)}"


def _value(value: Any) -> str:
    return "none" if value is None else as_json(value)


def _writes(plan: StatePlan) -> list[StateChange]:
    return [change for change in plan.changes if change.action != "report"]


def _count(changes: list[StateChange]) -> str:
    counts = Counter(change.action for change in changes)
    parts = [f"{counts[action]} {word}" for action, word in WORDS.items() if counts[action]]
    return ", ".join(parts) or "no changes"
