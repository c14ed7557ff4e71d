"""`gatewayctl scim-token`: the token of identity providers."""

from collections.abc import Callable, Mapping
from typing import Final

from gatewayctl.command import DryRun, Noun, Session
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.scim import ScimToken, ScimTokenWritten

noun = Noun("The SCIM token, with which an identity provider manages accounts.")

COLUMNS: Final[Mapping[str, Callable[[ScimToken], object]]] = {
    "TOKENS": lambda row: row.count,
    "FINGERPRINTS": lambda row: row.fingerprints,
    "ORIGIN": lambda row: row.origin,
    "WRITTEN": lambda row: row.written_at,
    "SCIM": lambda row: "on" if row.enabled else "off",
}
VIEW: View[ScimToken] = View(name=lambda row: row.origin, columns=COLUMNS)
ISSUED: View[ScimTokenWritten] = View(
    name=lambda row: row.value or row.origin, columns={"TOKEN": lambda row: row.value, **COLUMNS}
)
WRITTEN: View[ScimTokenWritten] = View(name=lambda row: row.origin, columns={})


@noun.verb("create", "gatewayctl scim-token create", "gatewayctl scim-token create -o name > token")
def create(session: Session, dry_run: DryRun = False) -> None:
    """Create the SCIM token and print it once; with -o name the value alone.

    It is accepted at once. Refused when there is a token: rotate it instead.
    """
    _show_issued(session, session.client.call(routes.CREATE_SCIM_TOKEN, dry_run=dry_run))


@noun.verb("rotate", "gatewayctl scim-token rotate -o name > token")
def rotate(session: Session, dry_run: DryRun = False) -> None:
    """Create a new SCIM token beside the present one and print it once.

    Both are accepted until the older one is retired, so that nothing is refused while the provider is given
    the new one.
    """
    _show_issued(session, session.client.call(routes.ROTATE_SCIM_TOKEN, dry_run=dry_run))


@noun.verb("retire", "gatewayctl scim-token retire")
def retire(session: Session, dry_run: DryRun = False) -> None:
    """Revoke the older of two SCIM tokens: requests with it are refused at once."""
    session.written(
        session.client.call(routes.RETIRE_SCIM_TOKEN, dry_run=dry_run), WRITTEN, "the older SCIM token in"
    )


@noun.verb("show", "gatewayctl scim-token show")
def show(session: Session) -> None:
    """Show the origin of the SCIM token, the number of tokens, and when they were written.

    A fingerprint is the beginning of the SHA-256 of a token, the newest first; values are never shown.
    """
    row = session.client.call(routes.GET_SCIM_TOKEN)
    session.show(row, VIEW)
    if row.stale:
        session.note("The file has a token that is not accepted: reload the daemon, or delete the file.")
    _tell_when_off(session, row)


def _show_issued(session: Session, row: ScimTokenWritten) -> None:
    if row.dry_run and session.output is Output.TABLE:
        session.written(row, WRITTEN, "SCIM token in")
        return
    session.show(row, ISSUED)
    if not row.dry_run:
        session.note("The token is not shown again.")
    _tell_when_off(session, row)


def _tell_when_off(session: Session, row: ScimToken) -> None:
    if not row.enabled:
        session.note("SCIM is off: set scim_enabled = true in gatewayd.toml(5) and reload the daemon.")
