"""The verbs `grant` and `revoke-access` of nouns with access lists."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Generic, Protocol, TypeVar

import typer

from gatewayctl.client import ControlClient
from gatewayctl.command import DryRun, Noun, Session
from gatewayctl.prompts import usage
from gatewayctl.render import View
from gatewayctl.wire.base import Written
from gatewayctl.wire.models import Grant, Holders, Right

WrittenRow = TypeVar("WrittenRow", bound=Written)
AnyWritten = TypeVar("AnyWritten", bound=Written, covariant=True)

ToUsers = Annotated[
    list[str] | None,
    typer.Option("--user", metavar="USER", help="User who gets or loses the right; may be repeated."),
]
ToGroups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Group that gets or loses the right; may be repeated."),
]
ToEveryone = Annotated[bool, typer.Option("--everyone", help="Every user gets or loses the right.")]
Permission = Annotated[Right, typer.Option("--permission", help="Right to change; read allows use.")]


class Change(Protocol[AnyWritten]):
    """A call of the client that grants or revokes rights on an object."""

    def __call__(
        self, client: ControlClient, thing: str, request: Holders, /, *, dry_run: bool
    ) -> AnyWritten:
        """Return the object after the write."""


@dataclass(frozen=True, slots=True)
class Things(Generic[WrittenRow]):
    """The objects of a noun.

    `what` is the word for one object in sentences, and `writing` explains the right to write; `argument` is
    the annotated type of the argument that identifies the object.
    """

    what: str
    writing: str
    argument: Any
    view: View[WrittenRow]
    grant: Change[WrittenRow]
    revoke: Change[WrittenRow]


def register(noun: Noun, things: Things[WrittenRow], grants: Sequence[str], revocation: str) -> None:
    """Add both verbs to a noun, with examples."""
    rows = (
        (
            "grant",
            things.grant,
            f"Grant users or groups a right on a {things.what}.\n\n{things.writing}",
            grants,
        ),
        (
            "revoke-access",
            things.revoke,
            f"Revoke a right on a {things.what}; a right that was not granted is no error.",
            (revocation,),
        ),
    )
    for name, change, summary, examples in rows:
        verb: Any = partial(_change, things, change)
        verb.__name__, verb.__doc__ = name, summary
        verb.__signature__ = _with_argument(inspect.signature(verb), things.argument)
        noun.verb(name, *examples)(verb)


def shown(grants: Sequence[Grant]) -> list[str]:
    """Return an access list for output; a right is shown if it is more than to use the object."""
    return [_shown(grant) for grant in grants]


def _shown(grant: Grant) -> str:
    who = grant.principal if grant.principal == "*" else f"{grant.principal_type} {grant.principal}"
    return who if grant.permission == "read" else f"{who} ({grant.permission})"


def _change(
    things: Things[WrittenRow],
    change: Change[WrittenRow],
    session: Session,
    thing: str,
    users: ToUsers = None,
    groups: ToGroups = None,
    everyone: ToEveryone = False,
    permission: Permission = "read",
    dry_run: DryRun = False,
) -> None:
    if not (users or groups or everyone):
        raise usage("cannot change the access list without a principal: add --user, --group or --everyone")
    request = Holders(users=users or [], groups=groups or [], everyone=everyone, permission=permission)
    row = change(session.client, thing, request, dry_run=dry_run)
    session.written(row, things.view, things.what)


def _with_argument(given: inspect.Signature, argument: Any) -> inspect.Signature:
    """Return a signature with the object annotated as this argument."""
    thing = given.parameters["thing"].replace(annotation=argument)
    return given.replace(parameters=list({**given.parameters, "thing": thing}.values()))
