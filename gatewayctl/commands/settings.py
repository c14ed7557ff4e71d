"""`gatewayctl setting`: settings that change while the daemon runs."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, describe
from gatewayctl.failures import CommandError
from gatewayctl.render import Output, View
from gatewayctl.values import parse_pairs
from gatewayctl.wire import routes
from gatewayctl.wire.settings import Setting, SettingChange, SettingReset, SettingsWritten

noun = Noun("Runtime settings, and where each value comes from.")


def _shown(value: object) -> object:
    # The words that `setting set` accepts, instead of yes and no.
    return str(value).lower() if isinstance(value, bool) else value


ROWS: View[Setting] = View(
    name=lambda row: row.name,
    columns={
        "SETTING": lambda row: row.name,
        "VALUE": lambda row: _shown(row.value),
        "ORIGIN": lambda row: row.origin,
        "CONFIGURED": lambda row: _shown(row.configured),
    },
)
DETAIL: View[Setting] = View(name=ROWS.name, columns={**ROWS.columns, "SUMMARY": lambda row: row.summary})
WRITTEN: View[SettingsWritten] = View(name=lambda _: "settings", columns={})


@noun.verb("list", "gatewayctl setting list")
def list_settings(session: Session) -> None:
    """List all runtime settings."""
    session.show_all(session.client.call(routes.LIST_SETTINGS).settings, ROWS)


@noun.verb("show", "gatewayctl setting show ENABLE_API_KEYS -o json")
def show(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="SETTING", help="Name of the setting.")],
) -> None:
    """Show one setting, with its origin."""
    for row in session.client.call(routes.LIST_SETTINGS).settings:
        if row.name == name:
            session.show(row, DETAIL)
            return
    raise CommandError("not_found", f"cannot find setting {name!r}", hint="gatewayctl setting list shows all")


@noun.verb("set", "gatewayctl setting set ENABLE_API_KEYS=true")
def set_settings(
    session: Session,
    pairs: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE", help="Setting and its new value.")],
    dry_run: DryRun = False,
) -> None:
    """Set settings; all of them or none."""
    request = SettingChange(values=dict(parse_pairs(pairs)))
    _show_written(session, session.client.call(routes.SET_SETTINGS, body=request, dry_run=dry_run))


@noun.verb("reset", "gatewayctl setting reset ENABLE_API_KEYS")
def reset(
    session: Session,
    names: Annotated[list[str], typer.Argument(metavar="SETTING", help="Names of the settings.")],
    dry_run: DryRun = False,
) -> None:
    """Return settings to the values that the configuration gives them."""
    request = SettingReset(names=names)
    _show_written(session, session.client.call(routes.RESET_SETTINGS, body=request, dry_run=dry_run))


def _show_written(session: Session, row: SettingsWritten) -> None:
    if session.output is Output.NAME:
        session.show_all(row.settings, ROWS)
        return
    if session.output is not Output.TABLE:
        session.show(row, WRITTEN)
        return
    for item in row.settings:
        word = describe(row.outcome, dry_run=row.dry_run)
        session.renderer.say(f"{word} {item.name}={_shown(item.value)} (origin: {item.origin})")
