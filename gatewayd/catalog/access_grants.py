"""Access lists (6.6): which rows there are, whom a row is for, and who may give one away."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from gatewayd.catalog.interfaces import Viewer
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import invalid

READ: Final = "read"
WRITE: Final = "write"

Principals = frozenset[tuple[str, str]]
"""Types and ids of those whom grants are for."""


class Grantor(Protocol):
    """Who gives others a right; an actor is one."""

    @property
    def is_admin(self) -> bool:
        """Administrators may give everything."""
        ...

    def may(self, area: str, name: str) -> bool:
        """Tell whether a permission (5.2) is held."""
        ...


def check_grant(grant: Grant) -> None:
    """Raise invalid_request unless the grant is one of the forms of 6.6."""
    checks: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
        ("principal_type", grant.principal_type, lambda value: value in {"user", "group"}),
        ("principal_id", grant.principal_id, bool),
        ("permission", grant.permission, lambda value: value in {READ, WRITE}),
    )
    for name, value, good in checks:
        if not good(value):
            raise invalid(f"cannot accept the grant: {name} is {value!r}", param=f"access_grants.{name}")


def is_for(grant: Grant, viewer: Viewer) -> bool:
    """Tell whether a grant is the viewer's, a group's of theirs, or everybody's."""
    if grant.principal_type == "group":
        return grant.principal_id in viewer.group_ids
    return grant.principal_id in {EVERYBODY, viewer.user_id}


def principals_of(grants: Iterable[Grant]) -> Principals:
    """Return whom grants are for, to be looked up whatever their number."""
    return frozenset((grant.principal_type, grant.principal_id) for grant in grants)


def admits(principals: Principals, viewer: Viewer) -> bool:
    """Tell whether one of the principals is the viewer, a group of theirs, or everybody."""
    if ("user", EVERYBODY) in principals or ("user", viewer.user_id) in principals:
        return True
    return any(("group", group_id) in principals for group_id in viewer.group_ids)


def covers(grant: Grant, viewer: Viewer, permission: str) -> bool:
    """Tell whether a grant gives a viewer a permission; who may write may read."""
    return permission in {READ, grant.permission} and is_for(grant, viewer)


def allowed_grants(
    giver: Grantor, wanted: Iterable[Grant], held: Iterable[Grant] = (), *, public: str
) -> tuple[Grant, ...]:
    """Return those of the wanted grants that may be given; what is `held` already may stay.

    `public` names the permission of `sharing` that lets everybody in, for example `public_tools`. The rest is
    dropped silently, as in the peer. A row of no known form raises invalid_request.
    """
    kept = frozenset(held)
    rows = tuple(dict.fromkeys(wanted))
    for grant in rows:
        check_grant(grant)
    return tuple(grant for grant in rows if grant in kept or _may_give(giver, grant, public))


def render_grant(grant: Grant) -> dict[str, Any]:
    """Return one row of an access list as clients of this API family see it."""
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
