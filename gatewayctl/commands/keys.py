"""`gatewayctl key`: API keys."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, UserRef, Yes
from gatewayctl.prompts import confirm
from gatewayctl.render import Output, View
from gatewayctl.values import parse_duration
from gatewayctl.wire import routes
from gatewayctl.wire.keys import Key, KeyReasons, KeyWritten, NewKey

noun = Noun("API keys.")

ROWS: View[Key] = View(
    name=lambda key: key.id,
    columns={
        "NAME": lambda key: key.name,
        "USER": lambda key: key.user,
        "PREFIX": lambda key: key.prefix,
        "EXPIRES": lambda key: key.expires_at,
        "LAST USED": lambda key: key.last_used_at,
        "ID": lambda key: key.id,
    },
)
ISSUED: View[KeyWritten] = View(
    name=lambda key: key.value or key.id,
    columns={
        "NAME": lambda key: key.name,
        "USER": lambda key: key.user,
        "EXPIRES": lambda key: key.expires_at,
        "ID": lambda key: key.id,
        "KEY": lambda key: key.value,
    },
)
REVOKED: View[KeyWritten] = View(name=lambda key: key.id, columns={})
REASONS: View[KeyReasons] = View(
    name=lambda row: "allowed" if row.allowed else "refused",
    columns={
        "USER": lambda row: row.user,
        "ALLOWED": lambda row: row.allowed,
        "MISSING": lambda row: "; ".join(row.missing),
    },
)


@noun.verb("list", "gatewayctl key list --user ada@example.org")
def list_keys(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the keys of this user.")
    ] = None,
) -> None:
    """List keys, oldest first; their values are not kept and cannot be shown."""
    session.show_all(session.client.call(routes.LIST_KEYS, user=user).keys, ROWS)


@noun.verb(
    "create",
    "gatewayctl key create ada@example.org laptop --expires-in 90d",
    "gatewayctl key create ada@example.org laptop -o name > key",
)
def create(
    session: Session,
    user: UserRef,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the key; unique for the user.")],
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="TIME", help="Lifetime of the key, for example 12h, 90d or 4w."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Issue a key and print its value, this once; with -o name the value alone.

    Nothing is shown of a value in a dry run.
    """
    request = NewKey(user=user, name=name)
    if expires_in is not None:
        request.expires_in = parse_duration(expires_in)
    row = session.client.call(routes.CREATE_KEY, body=request, dry_run=dry_run)
    if dry_run and session.output is Output.TABLE:
        session.written(row, REVOKED, "key")
        return
    session.show(row, ISSUED)
    session.note("The key is not shown again.")


@noun.verb("revoke", "gatewayctl key revoke 4f0c7f5e-8a83-4d6e-9a51-0f6f3a3c1b7d --yes")
def revoke(
    session: Session,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, as key list shows it.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Revoke a key at once."""
    confirm(f"Revoke the key {key}?", yes=yes or dry_run)
    session.written(session.client.call(routes.REVOKE_KEY, key, dry_run=dry_run), REVOKED, "key")


@noun.verb("why", "gatewayctl key why ada@example.org")
def why(session: Session, user: UserRef) -> None:
    """Show whether a user may create and use keys, and if not, what is missing."""
    session.show(session.client.call(routes.EXPLAIN_KEYS, user), REASONS)
