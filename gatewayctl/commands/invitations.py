"""`gatewayctl invitation`: invitations that were not used yet."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.prompts import confirm
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.invitations import Invitation, InvitationWritten

noun = Noun("Invitations that were not used yet; user invite creates one.")

ROWS: View[Invitation] = View(
    name=lambda row: row.id,
    columns={
        "EMAIL": lambda row: row.email,
        "ROLE": lambda row: row.role,
        "GROUPS": lambda row: row.groups,
        "CREATED": lambda row: row.created_at,
        "EXPIRES": lambda row: row.expires_at,
        "ID": lambda row: row.id,
    },
)
REVOKED: View[InvitationWritten] = View(name=lambda row: row.email or row.id, columns={})


@noun.verb("list", "gatewayctl invitation list")
def list_invitations(session: Session) -> None:
    """List the invitations that were not used, oldest first; their addresses are not kept."""
    session.show_all(session.client.call(routes.LIST_INVITATIONS).invitations, ROWS)


@noun.verb("revoke", "gatewayctl invitation revoke 4f0c7f5e-8a83-4d6e-9a51-0f6f3a3c1b7d --yes")
def revoke(
    session: Session,
    invitation: Annotated[
        str, typer.Argument(metavar="INVITATION", help="Id of the invitation, as invitation list shows it.")
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Revoke an invitation at once, so that its link does not work."""
    confirm(f"Revoke the invitation {invitation}?", yes=yes or dry_run)
    row = session.client.call(routes.REVOKE_INVITATION, invitation, dry_run=dry_run)
    session.written(row, REVOKED, "invitation")
