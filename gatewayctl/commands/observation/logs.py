"""`gatewayctl log`: the log of the daemon."""

from typing import Annotated

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.failures import CommandError
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.health import LevelChange, LoggerLevel

noun = Noun("The log of the daemon.")

ROWS: View[LoggerLevel] = View(
    name=lambda row: row.logger,
    columns={
        "LOGGER": lambda row: row.logger,
        "LEVEL": lambda row: row.level,
        "CHANGED": lambda row: row.changed,
    },
)


@noun.verb(
    "level",
    "gatewayctl log level",
    "gatewayctl log level gatewayd.http debug",
    "gatewayctl log level gatewayd.http default",
)
def level(
    session: Session,
    logger: Annotated[
        str | None, typer.Argument(metavar="LOGGER", help="Name of the logger, such as gatewayd.http.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Argument(metavar="LEVEL", help="debug, info, warning, error, critical, or default."),
    ] = None,
) -> None:
    """Show the levels of loggers, or set one while the daemon runs.

    A level counts for the loggers below, and until the daemon ends; a reload keeps it. default returns to the
    level of the settings. Libraries log messages and hashes of passwords below the level info.
    """
    if logger is None:
        session.show_all(session.client.call(routes.LIST_LOG_LEVELS).levels, ROWS)
        return
    if level is None:
        raise CommandError("usage", "missing argument 'LEVEL'", hint="see gatewayctl log level --help")
    change = LevelChange(logger=logger, level=level)
    session.show(session.client.call(routes.SET_LOG_LEVEL, body=change), ROWS)
