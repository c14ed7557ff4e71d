"""`gatewayctl database`: the database of the daemon."""

import sys
from typing import Annotated, Final

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.failures import FAILURE
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.database import DatabaseCheck, DatabaseState

noun = Noun("The database of the daemon.")

MAX_SECONDS: Final = 86400
SOUND: Final = "sound"

VIEW: View[DatabaseState] = View(
    name=lambda row: row.status,
    columns={"DATABASE": lambda row: row.status, "PROBLEMS": lambda row: row.problems},
)


@noun.verb("check", "gatewayctl database check", "gatewayctl database check --timeout 3600 -o name")
def check(
    session: Session,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, max=MAX_SECONDS, help="Time limit of the check."
        ),
    ] = 60.0,
) -> None:
    """Check the database for damage while the daemon runs.

    Of SQLite the pages and the indexes are checked, of PostgreSQL every value is read. Damage that is found
    makes the health of the daemon fail until a check finds none. -o name prints sound or damaged. Exits with
    1 when the database is damaged, or when the check takes longer.
    """
    state = session.client.call(routes.CHECK_DATABASE, body=DatabaseCheck(timeout=timeout))
    session.show(state, VIEW)
    if state.status != SOUND:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)
