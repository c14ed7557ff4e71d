"""`gatewayctl model`: models, their access lists, and custom models."""

from typing import Annotated, Any, Final

import typer

from gatewayctl.client import ControlClient
from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.commands import access_lists as access
from gatewayctl.completion import actions, completing, filters, tools
from gatewayctl.prompts import confirm, read_text
from gatewayctl.render import View
from gatewayctl.sanitize import begun
from gatewayctl.values import by_name, parse_values
from gatewayctl.wire import routes
from gatewayctl.wire.models import AccessChange, Holders, Model, ModelChange, ModelWritten, NewModel

noun = Noun("Models, who may use them, and custom models.")

MAX_CELL_CHARS: Final = 60

ROWS: View[Model] = View(
    name=lambda model: model.id,
    columns={
        "ID": lambda model: model.id,
        "NAME": lambda model: model.name,
        "SOURCE": lambda model: model.source,
        "AVAILABLE": lambda model: model.available,
        "ACTIVE": lambda model: model.active,
        "ACCESS": lambda model: access.shown(model.grants),
    },
)
DETAIL: View[Model] = View(
    name=ROWS.name,
    columns={
        **ROWS.columns,
        "BASE": lambda model: model.base,
        "FAMILY": lambda model: model.family,
        "SYSTEM": lambda model: begun(model.system, MAX_CELL_CHARS),
        "PARAMS": lambda model: by_name(model.params),
        "KNOWLEDGE": lambda model: model.knowledge,
        "TOOLS": lambda model: model.tools,
        "FILTERS": lambda model: model.filters,
        "ACTIONS": lambda model: model.actions,
    },
)
WRITTEN: View[ModelWritten] = View(name=lambda model: model.id, columns={})

ModelId = Annotated[str, typer.Argument(metavar="MODEL", help="Id of the model.")]
NewModelId = Annotated[str, typer.Argument(metavar="ID", help="Id of the new model.")]
Base = Annotated[str, typer.Option("--base", metavar="MODEL", help="Base model.")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the model; the id if not given.")]
System = Annotated[
    str | None,
    typer.Option("--system", metavar="TEXT", help="System prompt of the model; @FILE reads a file."),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Parameter of every request; JSON or text."),
]
Knowledge = Annotated[
    list[str] | None,
    typer.Option(
        "--knowledge", metavar="COLLECTION", help="Collection that the model answers from (name or id)."
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool", metavar="ID", help="Tool that the model may call.", autocompletion=completing(tools)
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="ID",
        help="Filter of the chats with the model.",
        autocompletion=completing(filters),
    ),
]
Actions = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="ID",
        help="Action on the messages of the model.",
        autocompletion=completing(actions),
    ),
]


@noun.verb("list", "gatewayctl model list", "gatewayctl model list --user ada@example.org -o name")
def list_models(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only models that this user may use.")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask every model source again first.")] = False,
) -> None:
    """List models; a model without access is for administrators only."""
    listed = session.client.call(routes.LIST_MODELS, user=user, refresh=refresh)
    session.show_all(listed.models, ROWS)
    for warning in listed.warnings:
        session.note(f"warning: {warning}")


@noun.verb("show", "gatewayctl model show smollm2-135m")
def show(session: Session, model: ModelId) -> None:
    """Show one model; of a custom model, also what it adds to its base model."""
    session.show(session.client.call(routes.GET_MODEL, id=model), DETAIL)


@noun.verb(
    "create",
    "gatewayctl model create helpdesk --base smollm2-135m --system @helpdesk.txt --knowledge handbook",
    "gatewayctl model create coder --base smollm2-135m --param temperature=0.2 --tool weather",
)
def create(
    session: Session,
    model: NewModelId,
    base: Base,
    name: Name = None,
    system: System = None,
    params: Params = None,
    knowledge: Knowledge = None,
    tools: Tools = None,
    filters: Filters = None,
    actions: Actions = None,
    dry_run: DryRun = False,
) -> None:
    """Create a custom model on a base model; only administrators use it until it is published or granted."""
    given: dict[str, Any] = {
        "name": name,
        "system": None if system is None else read_text(system, "--system"),
        "params": parse_values(params or []),
        "knowledge": knowledge,
        "tools": tools,
        "filters": filters,
        "actions": actions,
    }
    chosen = {field: value for field, value in given.items() if value}
    request = NewModel.model_validate({"id": model, "base": base, **chosen})
    session.written(session.client.call(routes.CREATE_MODEL, body=request, dry_run=dry_run), WRITTEN, "model")


@noun.verb("update", "gatewayctl model update our-deployment --family gpt-5.2")
def update(
    session: Session,
    model: ModelId,
    family: Annotated[
        str,
        typer.Option(
            "--family", metavar="NAME", help="Canonical id of the model, such as gpt-5.2; '' to forget it."
        ),
    ],
    dry_run: DryRun = False,
) -> None:
    """Store which model it is, if its id does not tell: its family decides what its requests may contain."""
    request = ModelChange(id=model, family=family)
    session.written(session.client.call(routes.UPDATE_MODEL, body=request, dry_run=dry_run), WRITTEN, "model")


@noun.verb("remove", "gatewayctl model remove helpdesk --yes")
def remove(session: Session, model: ModelId, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a custom model; of a model of a source, its access list and everything else that is stored."""
    confirm(f"Remove the model {model}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REMOVE_MODEL, id=model, dry_run=dry_run), WRITTEN, "model")


@noun.verb("publish", "gatewayctl model publish smollm2-135m")
def publish(session: Session, model: ModelId, dry_run: DryRun = False) -> None:
    """Let every account use a model."""
    request = AccessChange(model=model, everyone=True)
    session.written(session.client.call(routes.GRANT_MODEL, body=request, dry_run=dry_run), WRITTEN, "model")


def _grant(client: ControlClient, model: str, request: Holders, *, dry_run: bool) -> ModelWritten:
    return client.call(
        routes.GRANT_MODEL, body=AccessChange(model=model, **request.model_dump()), dry_run=dry_run
    )


def _revoke(client: ControlClient, model: str, request: Holders, *, dry_run: bool) -> ModelWritten:
    return client.call(
        routes.REVOKE_MODEL, body=AccessChange(model=model, **request.model_dump()), dry_run=dry_run
    )


access.register(
    noun,
    access.Things(
        "model",
        "The right to write adds nothing: only administrators change models.",
        ModelId,
        WRITTEN,
        _grant,
        _revoke,
    ),
    grants=["gatewayctl model grant smollm2-135m --group api-users"],
    revocation="gatewayctl model revoke-access smollm2-135m --everyone",
)
