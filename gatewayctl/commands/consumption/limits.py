"""`gatewayctl limit`: limits and budgets of model calls, and quotas of storage."""

from typing import Annotated, Any

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.prompts import confirm, usage
from gatewayctl.render import View
from gatewayctl.values import parse_size
from gatewayctl.wire import routes
from gatewayctl.wire.consumption.limits import Limit, LimitChange, LimitUse, LimitWritten

noun = Noun("Limits and budgets of model calls, and quotas of storage.")

OFF = "off"
"""Value of an option that removes a limit."""


def _whose(row: Limit) -> str:
    return f"{row.subject} {row.name or row.subject_id}".rstrip()


def _uses(row: Limit) -> str:
    return "; ".join(_use(each) for each in row.uses)


def _use(row: LimitUse) -> str:
    reserved = f" ({row.reserved} reserved)" if row.reserved else ""
    resets = f" until {row.resets_at}" if row.resets_at else ""
    return f"{row.what}: {row.used} used{reserved}, {row.left} left{resets}"


ROWS: View[Limit] = View(
    name=lambda row: row.id,
    columns={
        "OF": _whose,
        "MODEL": lambda row: row.model or None,
        "REQUESTS/MIN": lambda row: row.requests_per_minute,
        "TOKENS/MIN": lambda row: row.tokens_per_minute,
        "PARALLEL": lambda row: row.parallel,
        "BUDGETS": lambda row: ", ".join(row.budgets) or None,
        "STORAGE": lambda row: row.storage_bytes,
        "ID": lambda row: row.id,
    },
)
DETAIL: View[Limit] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "WARN AT": lambda row: None if row.warn_percent is None else f"{row.warn_percent}%",
        "CREATED": lambda row: row.created_at,
        "UPDATED": lambda row: row.updated_at,
        "USE": _uses,
    },
)
WRITTEN: View[LimitWritten] = View(name=lambda row: row.id, columns={})

OfKey = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Limit the calls with this key, by its id.")
]
OfUser = Annotated[
    str | None,
    typer.Option("--user", metavar="USER", help="Limit the calls of this user, in place of --default."),
]
OfGroup = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Limit the calls of all members of this group together."),
]
EachMember = Annotated[
    bool, typer.Option("--each-member", help="Limit the calls of each member of the group on their own.")
]
OfDefault = Annotated[
    bool,
    typer.Option("--default", help="Limit the calls of each user on their own who has no limit by --user."),
]
OfAll = Annotated[bool, typer.Option("--all", help="Limit the calls of all users together.")]
OfModel = Annotated[
    str,
    typer.Option(
        "--model", metavar="MODEL", help="Count only calls of this model and of models based on it."
    ),
]
RequestRate = Annotated[
    str | None,
    typer.Option("--requests-per-minute", metavar="NUMBER", help="Requests in any minute, or off."),
]
TokenRate = Annotated[
    str | None, typer.Option("--tokens-per-minute", metavar="NUMBER", help="Tokens in any minute, or off.")
]
ParallelCalls = Annotated[
    str | None, typer.Option("--parallel", metavar="NUMBER", help="Calls and streams at a time, or off.")
]
Budgets = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="BUDGET",
        help="Budgets in place of those before, such as 10usd/month or 1000000tokens/day, or off.",
    ),
]
WarnAt = Annotated[
    str | None,
    typer.Option(
        "--warn-at", metavar="PERCENT", help="Part of a budget at which the user is warned, or off."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option("--storage", metavar="SIZE", help="Bytes in files, such as 500M or 20G, or off."),
]
LimitRef = Annotated[str, typer.Argument(metavar="LIMIT", help="Id of the limit, as limit list shows it.")]


@noun.verb("list", "gatewayctl limit list")
def list_limits(session: Session) -> None:
    """List limits, oldest first."""
    session.show_all(session.client.call(routes.LIST_LIMITS).limits, ROWS)


@noun.verb("show", "gatewayctl limit show 0199c3a1-5a5e-7c1d-8f00-2f6a4c5b7d11 --user ada@example.org")
def show(
    session: Session,
    limit: LimitRef,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="Show the use of this user, if the limit counts each on their own."
        ),
    ] = None,
) -> None:
    """Show one limit and what is used of it now."""
    session.show(session.client.call(routes.SHOW_LIMIT, limit, user=user), DETAIL)


@noun.verb(
    "set",
    "gatewayctl limit set --default --requests-per-minute 60 --budget 5usd/week",
    "gatewayctl limit set --group staff --budget 500usd/month --warn-at 80",
    "gatewayctl limit set --user ada@example.org --model big --tokens-per-minute off --parallel 2",
    "gatewayctl limit set --default --storage 5G",
)
def set_limit(
    session: Session,
    key: OfKey = None,
    user: OfUser = None,
    group: OfGroup = None,
    each_member: EachMember = False,
    default: OfDefault = False,
    every: OfAll = False,
    model: OfModel = "",
    requests: RequestRate = None,
    tokens: TokenRate = None,
    parallel: ParallelCalls = None,
    budget: Budgets = None,
    warn_at: WarnAt = None,
    storage: Storage = None,
    dry_run: DryRun = False,
) -> None:
    """Create a limit, or change the one of the same subject and model.

    What is not given stays as it is. Periods are those of the calendar in UTC. All limits that count a call
    apply together; the refusal names the one that has the longest wait.
    """
    whose = _given(key=key, user=user, group=group)
    if len(whose) + default + every > 1 or not (whose or default or every or model):
        raise usage("cannot set the limit: give one of --key, --user, --group, --default, --all or --model")
    if each_member and group is None:
        raise usage("cannot set the limit: --each-member needs --group")
    texts = _given(
        requests_per_minute=requests, tokens_per_minute=tokens, parallel=parallel, warn_percent=warn_at
    )
    values = {name: _number(name, text) for name, text in texts.items()}
    if storage is not None:
        values["storage_bytes"] = None if storage == OFF else parse_size(storage)
    if budget is not None:
        values["budgets"] = None if budget == [OFF] else budget
    if not values:
        raise usage("cannot set the limit: nothing to limit was given")
    request = LimitChange.model_validate(
        {**whose, "each_member": each_member, "default": default, "model": model, **values}
    )
    session.written(session.client.call(routes.SET_LIMIT, body=request, dry_run=dry_run), WRITTEN, "limit")


@noun.verb("remove", "gatewayctl limit remove 0199c3a1-5a5e-7c1d-8f00-2f6a4c5b7d11 --yes")
def remove(session: Session, limit: LimitRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove a limit, and forget what was used of it."""
    confirm(f"Remove the limit {limit}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REMOVE_LIMIT, limit, dry_run=dry_run), WRITTEN, "limit")


def _given(**options: str | None) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _number(name: str, text: str) -> Any:
    if text == OFF:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise usage(f"cannot set the limit: {name} is {text!r}, expected a number or off")
    return int(text)
