"""Access lists: their valid grants, matching of viewers, and the right to share."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from gatewayd.catalog.interfaces import Viewer
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import invalid

READ: Final = "read"
WRITE: Final = "write"

Principals = frozenset[tuple[str, str]]
"""Types and ids of the principals that hold grants."""


class Grantor(Protocol):
    """A user who shares a resource; an actor is one."""

    @property
    def is_admin(self) -> bool:
        """Whether the user may grant everything."""
        ...

    def may(self, area: str, name: str) -> bool:
        """Return True if the user has a permission (gatewayd.toml(5), SETTINGS)."""
        ...


def check_grant(grant: Grant) -> None:
    """Raise invalid_request unless the grant names a user or group and the permission read or write."""
    checks: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
        ("principal_type", grant.principal_type, lambda value: value in {"user", "group"}),
        ("principal_id", grant.principal_id, bool),
        ("permission", grant.permission, lambda value: value in {READ, WRITE}),
    )
    for name, value, good in checks:
        if not good(value):
            raise invalid(f"cannot accept the grant: {name} is {value!r}", param=f"access_grants.{name}")


def is_for(grant: Grant, viewer: Viewer) -> bool:
    """Return True if a grant is for the viewer, for one of their groups, or for everybody."""
    if grant.principal_type == "group":
        return grant.principal_id in viewer.group_ids
    return grant.principal_id in {EVERYBODY, viewer.user_id}


def principals_of(grants: Iterable[Grant]) -> Principals:
    """Return the principals of grants as a set, for fast lookup."""
    return frozenset((grant.principal_type, grant.principal_id) for grant in grants)


def admits(principals: Principals, viewer: Viewer) -> bool:
    """Return True if a principal is the viewer, one of their groups, or everybody."""
    if ("user", EVERYBODY) in principals or ("user", viewer.user_id) in principals:
        return True
    return any(("group", group_id) in principals for group_id in viewer.group_ids)


def covers(grant: Grant, viewer: Viewer, permission: str) -> bool:
    """Return True if a grant gives a viewer a permission; write includes read."""
    return permission in {READ, grant.permission} and is_for(grant, viewer)


def allowed_grants(
    giver: Grantor, wanted: Iterable[Grant], held: Iterable[Grant] = (), *, public: str
) -> tuple[Grant, ...]:
    """Return the wanted grants that the user may give; grants in `held` may stay.

    `public` names the permission of the section `sharing` that allows grants to everybody, such as
    `public_tools`. Other grants are dropped silently, as Open WebUI does. An invalid grant raises
    invalid_request.
    """
    kept = frozenset(held)
    rows = tuple(dict.fromkeys(wanted))
    for grant in rows:
        check_grant(grant)
    return tuple(grant for grant in rows if grant in kept or _may_give(giver, grant, public))


def render_grant(grant: Grant) -> dict[str, Any]:
    """Render one grant of an access list in the format of Open WebUI."""
    return {
        "principal_type": grant.principal_type,
        "principal_id": grant.principal_id,
        "permission": grant.permission,
    }


def _may_give(giver: Grantor, grant: Grant, public: str) -> bool:
    if giver.is_admin:
        return True
    if grant.principal_type == "group":
        return giver.may("access_grants", "allow_groups")
    if grant.principal_id == EVERYBODY:
        return giver.may("sharing", public)
    return giver.may("access_grants", "allow_users")
