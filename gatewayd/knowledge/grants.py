"""Access lists of collections: the forms that clients send, and what an actor may give away."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.catalog.service import check_grant, is_for
from gatewayd.errors import invalid

MAX_GRANTS: Final = 1000
MAX_PRINCIPAL: Final = 64

READ: Final = "read"
WRITE: Final = "write"


def read_grants(value: Any) -> tuple[Grant, ...]:
    """Return the grants of an `access_grants` list; none for None. invalid_request names what is wrong."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_GRANTS:
        raise invalid(
            f"cannot accept access_grants: expected a list of at most {MAX_GRANTS}", param="access_grants"
        )
    return tuple(dict.fromkeys(_grant(row, f"access_grants[{index}]") for index, row in enumerate(value)))


def from_access_control(value: Any) -> tuple[Grant, ...]:
    """Return the grants of the former `access_control`: None is everybody's to read, {} is private."""
    if value is None:
        return (Grant("user", EVERYBODY, READ),)
    if not isinstance(value, Mapping):
        raise invalid("cannot accept access_control: expected an object or null", param="access_control")
    rows = []
    for permission in (READ, WRITE):
        for kind in ("group", "user"):
            for name in _ids(value, permission, f"{kind}_ids"):
                row = {"principal_type": kind, "principal_id": name, "permission": permission}
                rows.append(_grant(row, f"access_control.{permission}.{kind}_ids"))
    return tuple(dict.fromkeys(rows))


def allowed(actor: Actor, wanted: Iterable[Grant], held: Iterable[Grant] = ()) -> tuple[Grant, ...]:
    """Return those of the wanted grants that an actor may give; what is `held` already may stay.

    Administrators have every permission. The rest is dropped silently, as in the peer.
    """
    kept = frozenset(held)
    return tuple(grant for grant in dict.fromkeys(wanted) if grant in kept or _may_give(actor, grant))


def covers(grant: Grant, actor: Actor, permission: str) -> bool:
    """Tell whether a grant gives an actor a permission; who may write may read."""
    return (permission != WRITE or grant.permission == WRITE) and is_for(grant, actor)


def _may_give(actor: Actor, grant: Grant) -> bool:
    if actor.is_admin:
        return True
    if grant.principal_type == "group":
        return actor.may("access_grants", "allow_groups")
    if grant.principal_id == EVERYBODY:
        return actor.may("sharing", "public_knowledge")
    return actor.may("access_grants", "allow_users")


def _grant(row: Any, where: str) -> Grant:
    if not isinstance(row, Mapping):
        raise invalid(f"cannot accept {where}: expected an object", param=where)
    names = ("principal_type", "principal_id", "permission")
    fields = [field for field in map(row.get, names) if isinstance(field, str)]
    if len(fields) != len(names):
        raise invalid(
            f"cannot accept {where}: expected texts as principal_type, principal_id and permission",
            param=where,
        )
    grant = Grant(*fields)
    check_grant(grant)
    clean(grant.principal_id, f"{where}.principal_id", longest=MAX_PRINCIPAL)
    return grant


def _ids(value: Mapping[str, Any], permission: str, name: str) -> list[Any]:
    side = value.get(permission)
    if side is None:
        return []
    found = side.get(name, []) if isinstance(side, Mapping) else side
    if not isinstance(side, Mapping) or not isinstance(found, list | None) or len(found or ()) > MAX_GRANTS:
        where = f"access_control.{permission}"
        raise invalid(f"cannot accept {where}: expected an object with lists of ids", param=where)
    return found or []
