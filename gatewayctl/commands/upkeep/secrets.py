"""`gatewayctl secret`: the signing secret of the gateway."""

from typing import Annotated

import typer

from gatewayctl.command import Noun, Session, Yes
from gatewayctl.commands.backups import progress
from gatewayctl.offline.orders import ConfigFile, run_order
from gatewayctl.offline.results import RotatedSecret
from gatewayctl.prompts import confirm
from gatewayctl.render import View

noun = Noun("The signing secret, which signs sessions and encrypts valves, keys and tokens in the database.")

DAY_SECONDS = 86400
ROTATED: View[RotatedSecret] = View(
    name=lambda row: row.until,
    columns={"SESSIONS UNTIL": lambda row: row.until, "FORMER": lambda row: row.former},
)


@noun.verb("rotate", "gatewayctl secret rotate --yes", "gatewayctl secret rotate --overlap-days 0 --yes")
def rotate(
    session: Session,
    overlap_days: Annotated[
        int,
        typer.Option(
            "--overlap-days",
            min=0,
            max=366,
            metavar="DAYS",
            help="Days that present sessions stay valid.",
        ),
    ] = 30,
    yes: Yes = False,
    config: ConfigFile = None,
) -> None:
    """Replace the signing secret. The daemon uses the new one from its next start on.

    That start encrypts everything stored anew, in one transaction; until then the former secret decrypts it.
    Run as root or as the user of the daemon.
    """
    confirm("Replace the signing secret?", yes=yes)
    seconds = overlap_days * DAY_SECONDS
    done = run_order("secret.rotate", progress(session), config, seconds=seconds)
    session.show(RotatedSecret.model_validate(done), ROTATED)
    session.note("Restart the daemon: systemctl restart gatewayd")
