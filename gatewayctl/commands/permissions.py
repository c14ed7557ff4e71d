"""`gatewayctl permission`: permissions of accounts, by default and through groups."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, UserRef, Yes, describe
from gatewayctl.failures import CommandError
from gatewayctl.prompts import confirm
from gatewayctl.render import Output, View
from gatewayctl.values import parse_flags, split_permission
from gatewayctl.wire import routes
from gatewayctl.wire.permissions import (
    AuditFinding,
    Explained,
    Permission,
    PermissionChange,
    PermissionReset,
    PermissionsWritten,
)

noun = Noun("Permissions: the defaults of the role user, and what groups add to them.")

ROWS: View[Permission] = View(
    name=lambda row: row.name,
    columns={
        "PERMISSION": lambda row: row.name,
        "ALLOWED": lambda row: row.allowed,
        "INITIAL": lambda row: row.initial,
        "ORIGIN": lambda row: row.origin,
    },
)
EXPLAINED: View[Explained] = View(
    name=lambda row: row.name,
    columns={
        "PERMISSION": lambda row: row.name,
        "ALLOWED": lambda row: row.allowed,
        "ALLOWED BY": lambda row: row.allowed_by,
    },
)
FINDINGS: View[AuditFinding] = View(
    name=lambda row: row.tool or row.holder,
    columns={
        "FINDING": lambda row: row.finding,
        "TOOL": lambda row: row.tool,
        "HOLDER": lambda row: row.holder,
        "ACCOUNTS": lambda row: row.accounts,
    },
)
WRITTEN: View[PermissionsWritten] = View(name=lambda row: row.group or "default", columns={})

InGroup = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="GROUP", help="Permissions that this group adds, instead of the defaults."
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="PERMISSION", help="Name of the permission, for example features.api_keys."),
]


@noun.verb("list", "gatewayctl permission list", "gatewayctl permission list --group api-users")
def list_permissions(session: Session, group: InGroup = None) -> None:
    """List the default permissions, or those that a group adds."""
    session.show_all(session.client.call(routes.LIST_PERMISSIONS, group=group).permissions, ROWS)


@noun.verb("show", "gatewayctl permission show features.api_keys")
def show(
    session: Session,
    permission: Annotated[
        str,
        typer.Argument(metavar="PERMISSION", help="Name of the permission, for example features.api_keys."),
    ],
    group: InGroup = None,
) -> None:
    """Show one permission."""
    split_permission(permission)
    for row in session.client.call(routes.LIST_PERMISSIONS, group=group).permissions:
        if row.name == permission:
            session.show(row, ROWS)
            return
    where = f"group {group!r}" if group else "the default permissions"
    raise CommandError("not_found", f"cannot find permission {permission!r} in {where}")


@noun.verb(
    "set",
    "gatewayctl permission set features.api_keys=true",
    "gatewayctl permission set features.api_keys=true --group api-users",
)
def set_permissions(
    session: Session,
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PERMISSION=VALUE", help="Permission and value to set, true or false."),
    ],
    group: InGroup = None,
    dry_run: DryRun = False,
) -> None:
    """Set default permissions, or permissions of a group; all of them or none."""
    request = PermissionChange(group=group, values=parse_flags(pairs))
    _show_written(session, session.client.call(routes.SET_PERMISSIONS, body=request, dry_run=dry_run))


@noun.verb("reset", "gatewayctl permission reset features.api_keys", "gatewayctl permission reset --yes")
def reset(
    session: Session, names: Names = None, group: InGroup = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Return default permissions to their initial values, or take permissions from a group.

    Without names all of them are reset.
    """
    for name in names or []:
        split_permission(name)
    if not names:
        confirm("Reset all permissions?", yes=yes or dry_run)
    request = PermissionReset(group=group, names=names or [])
    _show_written(session, session.client.call(routes.RESET_PERMISSIONS, body=request, dry_run=dry_run))


@noun.verb("explain", "gatewayctl permission explain ada@example.org")
def explain(
    session: Session,
    user: UserRef,
    permission: Annotated[
        str | None, typer.Option("--permission", metavar="PERMISSION", help="Show only this permission.")
    ] = None,
) -> None:
    """Show what a user may do, and what allows it."""
    rows = session.client.call(routes.EXPLAIN_PERMISSIONS, user).permissions
    if permission is not None:
        rows = [row for row in rows if row.name == permission]
        if not rows:
            raise CommandError("not_found", f"cannot find permission {permission!r}")
    session.show_all(rows, EXPLAINED)


@noun.verb("audit", "gatewayctl permission audit", "gatewayctl permission audit -o json")
def audit(session: Session) -> None:
    """List users who hold rights on the source of tools without the permission workspace.tools.

    An owner installed the source that runs.
    A write_grant changes name, description, valves and access list, and the source as soon as its holder
    gets the permission.
    An import_permission installs tools.
    ACCOUNTS counts the accounts of the holder that lack the permission.
    """
    session.show_all(session.client.call(routes.AUDIT_PERMISSIONS).findings, FINDINGS)


def _show_written(session: Session, row: PermissionsWritten) -> None:
    if session.output is Output.NAME:
        session.show_all(row.permissions, ROWS)
        return
    if session.output is not Output.TABLE:
        session.show(row, WRITTEN)
        return
    where = f"of group {row.group}" if row.group else "by default"
    for item in row.permissions:
        value = "true" if item.allowed else "false"
        session.renderer.say(f"{describe(row.outcome, dry_run=row.dry_run)} {item.name}={value} {where}")
    if not row.permissions:
        session.renderer.say(f"{describe(row.outcome, dry_run=row.dry_run)} permissions {where}")
