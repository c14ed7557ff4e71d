"""`gatewayctl model`: which models there are, and who may use them."""

from typing import Annotated

import typer

from gatewayctl.prompts import usage
from gatewayctl.render import View
from gatewayctl.verbs import DryRun, Noun, Session
from gatewayctl.wire.models import AccessChange, Grant, Model, ModelWritten, Right

noun = Noun("Models, and who may use them.")


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
    """Show one model."""
    session.show(session.client.get_model(model), ROWS)


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


def _access_change(
    model: str, users: list[str] | None, groups: list[str] | None, *, everyone: bool, permission: Right
) -> AccessChange:
    if not (users or groups or everyone):
        raise usage("cannot tell who: give --user, --group or --everyone")
    return AccessChange(
        model=model, users=users or [], groups=groups or [], everyone=everyone, permission=permission
    )
