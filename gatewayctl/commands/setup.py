"""`gatewayctl setup`: the first administrator."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Session, add_verb
from gatewayctl.commands.users import PasswordFile
from gatewayctl.prompts import read_secret
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.setup import Setup, SetupReply

VIEW: View[SetupReply] = View(
    name=lambda row: row.key or row.email,
    columns={
        "EMAIL": lambda row: row.email,
        "NAME": lambda row: row.name,
        "GROUP": lambda row: row.group,
        "PASSWORD": lambda row: row.password or "as given",
        "KEY": lambda row: row.key,
    },
)


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(
        app,
        "setup",
        run,
        "gatewayctl setup --email ada@example.org --name 'Ada L'",
        "gatewayctl setup --email ada@example.org --name Ada -o name > key",
    )


def run(
    session: Session,
    email: Annotated[str, typer.Option("--email", help="E-mail address of the administrator.")],
    name: Annotated[str, typer.Option("--name", help="Name of the administrator.")],
    password_file: PasswordFile = None,
    group: Annotated[
        str, typer.Option("--group", metavar="NAME", help="Group whose members may have API keys.")
    ] = "api-users",
    dry_run: DryRun = False,
) -> None:
    """Create the first administrator, switch API keys on, and print one key once.

    Makes up a password unless one is given. With -o name only the key is printed. Refuses when an account
    exists.
    """
    request = Setup(email=email, name=name, group=group)
    if password_file is not None:
        request.password = read_secret(password_file, "--password-file")
    session.show(session.client.call(routes.RUN_SETUP, body=request, dry_run=dry_run), VIEW)
    session.note("Nothing was kept: this was a dry run." if dry_run else "The key is not shown again.")
