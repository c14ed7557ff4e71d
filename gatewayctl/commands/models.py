"""`gatewayctl model`: which models there are, who may use them, and models that stand on others."""

from typing import Annotated, Any, Final

import typer

from gatewayctl.prompts import confirm, read_secret, usage
from gatewayctl.render import View
from gatewayctl.safe import begun
from gatewayctl.values import by_name, parse_values
from gatewayctl.verbs import DryRun, Noun, Session, Yes
from gatewayctl.wire.models import AccessChange, Grant, Holders, Model, ModelWritten, NewModel, Right

noun = Noun("Models, who may use them, and models that stand on others.")

LONGEST_CELL: Final = 60


def _access(model: Model) -> list[str]:
    return [_grant(grant) for grant in model.grants]


def _grant(grant: Grant) -> str:
    who = grant.principal if grant.principal == "*" else f"{grant.principal_type} {grant.principal}"
    return who if grant.permission == "read" else f"{who} ({grant.permission})"


ROWS: View[Model] = View(
    name=lambda model: model.id,
    columns={
        "ID": lambda model: model.id,
        "NAME": lambda model: model.name,
        "SOURCE": lambda model: model.source,
        "AVAILABLE": lambda model: model.available,
        "ACTIVE": lambda model: model.active,
        "ACCESS": _access,
    },
)
DETAIL: View[Model] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "BASE": lambda model: model.base,
        "SYSTEM": lambda model: begun(model.system, LONGEST_CELL),
        "PARAMS": lambda model: by_name(model.params),
        "KNOWLEDGE": lambda model: model.knowledge,
        "TOOLS": lambda model: model.tools,
        "FILTERS": lambda model: model.filters,
        "ACTIONS": lambda model: model.actions,
    },
)
WRITTEN: View[ModelWritten] = View(name=lambda model: model.id, columns={})

ModelId = Annotated[str, typer.Argument(metavar="MODEL", help="The id of the model.")]
ToUsers = Annotated[list[str] | None, typer.Option("--user", metavar="USER", help="A user; may be repeated.")]
ToGroups = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="A group; may be repeated.")
]
ToEveryone = Annotated[bool, typer.Option("--everyone", help="Every account.")]
Permission = Annotated[Right, typer.Option("--permission", help="The right; read is the right to use it.")]


@noun.verb("list", "gatewayctl model list", "gatewayctl model list --user ada@example.org -o name")
def list_models(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Only what this user may use.")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask every source again first.")] = False,
) -> None:
    """List models; one without access is for administrators only."""
    session.show_all(session.client.list_models(user, refresh=refresh).models, ROWS)


@noun.verb("show", "gatewayctl model show smollm2-135m")
def show(session: Session, model: ModelId) -> None:
    """Show one model; of one that stands on another, what it adds to that."""
    session.show(session.client.get_model(model), DETAIL)


@noun.verb(
    "create",
    "gatewayctl model create helpdesk --base smollm2-135m --system @helpdesk.txt --knowledge handbook",
    "gatewayctl model create coder --base smollm2-135m --param temperature=0.2 --tool weather",
)
def create(
    session: Session,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The id of the new model.")],
    base: Annotated[str, typer.Option("--base", metavar="MODEL", help="The model that it stands on.")],
    name: Annotated[
        str | None, typer.Option("--name", help="What it is called; the id if not given.")
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Its prompt; @FILE reads a file.")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="A parameter of every request; JSON or text."),
    ] = None,
    knowledge: Annotated[
        list[str] | None,
        typer.Option("--knowledge", metavar="COLLECTION", help="A collection to answer from: a name or id."),
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option("--tool", metavar="ID", help="A tool it may call.")
    ] = None,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", metavar="ID", help="A filter of its chats.")
    ] = None,
    actions: Annotated[
        list[str] | None, typer.Option("--action", metavar="ID", help="An action on its messages.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Make a model on top of another; only administrators use it until it is published or granted."""
    given: dict[str, Any] = {
        "name": name,
        "system": _text(system),
        "params": parse_values(params or []),
        "knowledge": knowledge,
        "tools": tools,
        "filters": filters,
        "actions": actions,
    }
    chosen = {field: value for field, value in given.items() if value}
    request = NewModel.model_validate({"id": model, "base": base, **chosen})
    session.written(session.client.create_model(request, dry_run=dry_run), WRITTEN, "model")


@noun.verb("remove", "gatewayctl model remove helpdesk --yes")
def remove(session: Session, model: ModelId, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a model that stands on another; of a listed one, its access list and all else that is kept."""
    confirm(f"Remove the model {model}?", yes=yes or dry_run)
    session.written(session.client.remove_model(model, dry_run=dry_run), WRITTEN, "model")


@noun.verb("publish", "gatewayctl model publish smollm2-135m")
def publish(session: Session, model: ModelId, dry_run: DryRun = False) -> None:
    """Let every account use a model."""
    request = AccessChange(model=model, everyone=True)
    session.written(session.client.grant_model(request, dry_run=dry_run), WRITTEN, "model")


@noun.verb("grant", "gatewayctl model grant smollm2-135m --group api-users")
def grant(
    session: Session,
    model: ModelId,
    users: ToUsers = None,
    groups: ToGroups = None,
    everyone: ToEveryone = False,
    permission: Permission = "read",
    dry_run: DryRun = False,
) -> None:
    """Give users or groups a right on a model."""
    request = _access_change(model, users, groups, everyone=everyone, permission=permission)
    session.written(session.client.grant_model(request, dry_run=dry_run), WRITTEN, "model")


@noun.verb("revoke-access", "gatewayctl model revoke-access smollm2-135m --everyone")
def revoke_access(
    session: Session,
    model: ModelId,
    users: ToUsers = None,
    groups: ToGroups = None,
    everyone: ToEveryone = False,
    permission: Permission = "read",
    dry_run: DryRun = False,
) -> None:
    """Take a right on a model away; one that was not given is no error."""
    request = _access_change(model, users, groups, everyone=everyone, permission=permission)
    session.written(session.client.revoke_model(request, dry_run=dry_run), WRITTEN, "model")


def holders(
    users: list[str] | None, groups: list[str] | None, *, everyone: bool, permission: Right
) -> Holders:
    """Return who is named; usage when nobody is."""
    if not (users or groups or everyone):
        raise usage("cannot tell who: give --user, --group or --everyone")
    return Holders(users=users or [], groups=groups or [], everyone=everyone, permission=permission)


def _access_change(
    model: str, users: list[str] | None, groups: list[str] | None, *, everyone: bool, permission: Right
) -> AccessChange:
    named = holders(users, groups, everyone=everyone, permission=permission)
    return AccessChange(model=model, **named.model_dump())


def _text(given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    return read_secret(given.removeprefix("@"), "--system")
