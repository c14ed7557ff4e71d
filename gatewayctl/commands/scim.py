"""`gatewayctl scim`: provisioning by identity providers."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.failures import FAILURE
from gatewayctl.prompts import read_secret, usage
from gatewayctl.render import View
from gatewayctl.scimcheck.address import read_base
from gatewayctl.scimcheck.probe import HttpProbe, make_context
from gatewayctl.scimcheck.records import Result
from gatewayctl.scimcheck.run import run, start, steps
from gatewayctl.wire import routes
from gatewayctl.wire.scim import ScimCheck, ScimRequest, ScimStatus

noun = Noun("Provisioning: accounts and groups that an identity provider manages by SCIM.")

TOKEN_FILE: Final = "--token-file"  # noqa: S105 - an option


def _seen(row: ScimRequest | None) -> str | None:
    return None if row is None else f"{row.at} {row.method} {row.path} {row.status} {row.detail}".rstrip()


STATUS: View[ScimStatus] = View(
    name=lambda row: "on" if row.enabled else "off",
    columns={
        "SCIM": lambda row: "on" if row.enabled else "off",
        "PROVIDER": lambda row: row.provider,
        "TOKENS": lambda row: row.token_count,
        "TOKEN ORIGIN": lambda row: row.token_origin,
        "USERS": lambda row: row.users,
        "ACTIVE USERS": lambda row: row.active_users,
        "PROVISIONED USERS": lambda row: row.provisioned_users,
        "GROUPS": lambda row: row.groups,
        "PROVISIONED GROUPS": lambda row: row.provisioned_groups,
        "SCIM MEMBERSHIPS": lambda row: row.memberships,
        "LAST REQUEST": lambda row: _seen(row.last_request),
        "LAST REFUSED": lambda row: _seen(row.last_refused),
    },
)
REQUESTS: View[ScimRequest] = View(
    name=lambda row: row.request_id,
    columns={
        "AT": lambda row: row.at,
        "METHOD": lambda row: row.method,
        "PATH": lambda row: row.path,
        "STATUS": lambda row: row.status,
        "ADDRESS": lambda row: row.address,
        "REQUEST ID": lambda row: row.request_id,
        "DETAIL": lambda row: row.detail,
    },
)
STEPS: View[ScimCheck] = View(
    name=lambda row: f"{row.result} {row.step}",
    columns={
        "STEP": lambda row: row.step,
        "RESULT": lambda row: row.result,
        "DETAIL": lambda row: f"{row.detail}; {row.advice}" if row.advice else row.detail,
    },
)


@noun.verb("status", "gatewayctl scim status", "gatewayctl scim status -o name")
def status(session: Session) -> None:
    """Show the state of SCIM, its token, the number of provisioned users and groups, and the last requests.

    -o name prints on or off. The requests are those since the daemon was started.
    """
    session.show(session.client.call(routes.GET_SCIM_STATUS), STATUS)


@noun.verb("log", "gatewayctl scim log --limit 20")
def log(
    session: Session,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of requests to list.")
    ] = None,
) -> None:
    """List the last requests of identity providers, newest first.

    The daemon remembers a hundred; its log has them all.
    """
    session.show_all(session.client.call(routes.LIST_SCIM_REQUESTS, limit=limit).requests, REQUESTS)


@noun.verb(
    "check",
    "gatewayctl scim check https://chat.example.org --token-file token",
    "gatewayctl scim check http://127.0.0.1:8080 --write < token",
)
def check(
    session: Session,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the site, or the whole SCIM base address.")
    ],
    token_file: Annotated[
        str | None,
        typer.Option(
            TOKEN_FILE, metavar="FILE", help="Read the SCIM token from FILE; - reads standard input."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also create, change and delete a group for the check.")
    ] = False,
    ca: Annotated[
        Path | None, typer.Option("--ca", metavar="FILE", help="Trust the certificates in FILE, as PEM.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept any certificate of the server.")
    ] = False,
) -> None:
    """Send the first requests of an identity provider, and explain each failure.

    Reads only, unless --write is given. Run it at or near the origin of the provider's requests: it needs no
    control socket. Without --token-file the token is read from standard input. Exits with 1 when a step
    failed.
    """
    base = read_base(url)
    token = _read_token(token_file)
    probe = HttpProbe(base, token, make_context(base, ca, is_insecure=insecure))
    rows = list(run(probe, start(base, token), steps(is_writing=write)))
    session.show_all(rows, STEPS)
    if any(row.result == Result.FAILED for row in rows):
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


def _read_token(source: str | None) -> str:
    """Return the newest token of a file, or of standard input if it is no terminal."""
    if source is None and sys.stdin.isatty():
        raise usage(f"cannot check without the token: add {TOKEN_FILE}", param=TOKEN_FILE)
    words = read_secret(source or "-", TOKEN_FILE).split()
    if not words or not all("!" <= character <= "~" for character in words[0]):
        raise usage(f"cannot use {TOKEN_FILE}: expected a word of ASCII characters", param=TOKEN_FILE)
    return words[0]
