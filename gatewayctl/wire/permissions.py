"""Permissions on the wire; a permission is named `section.leaf`, for example `features.api_keys`."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class Permission(Reply):
    """One leaf of a tree.

    `origin` is `default` for a value of the default permissions, or `group`. `initial` is what a reset
    returns to: the configured or built-in default, and for a group false, which adds nothing.
    """

    name: str
    allowed: bool
    origin: str
    initial: bool


class PermissionList(Reply):
    """Leaves in the order of the tree."""

    permissions: list[Permission]


class PermissionsWritten(Written):
    """The named leaves after the write; `group` is the name of the group, None for the defaults."""

    group: str | None = None
    permissions: list[Permission]


class PermissionChange(Request):
    """Leaves to set, by name; `group` (id or name) None means the default permissions."""

    group: str | None = None
    values: dict[str, bool]


class PermissionReset(Request):
    """Leaves to reset (empty: all): those of a group are removed, defaults return to their initial values."""

    group: str | None = None
    names: list[str] = Field(default_factory=list)


class Explained(Reply):
    """One leaf for one user, and the sources that allow it: `default` or the names of groups."""

    name: str
    allowed: bool
    allowed_by: list[str] = Field(default_factory=list)


class Explanation(Reply):
    """The effective permissions of a user."""

    user: str
    role: str
    permissions: list[Explained]


class AuditFinding(Reply):
    """A right on the source of tools without the permission `workspace.tools`.

    `finding` is `owner` or `write_grant` of a tool, or `import_permission`. `holder` is an e-mail,
    `group:NAME` or `*` for every account. `accounts` counts those who lack the permission, None for every
    account.
    """

    finding: str
    tool: str | None
    holder: str
    accounts: int | None


class PermissionAudit(Reply):
    """The findings, those of tools by id first; empty when there are none."""

    findings: list[AuditFinding]
