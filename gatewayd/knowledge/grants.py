"""Parser of access lists in the two forms of Open WebUI: `access_grants` and the older `access_control`."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.accounts.texts import clean
from gatewayd.catalog.access_grants import READ, WRITE, check_grant
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import invalid

MAX_GRANTS: Final = 1000
MAX_PRINCIPAL_CHARACTERS: Final = 64


def read_grants(value: Any) -> tuple[Grant, ...]:
    """Return the grants of an `access_grants` list, () for None; invalid_request names the wrong field."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_GRANTS:
        raise invalid(
            f"cannot accept access_grants: expected a list of at most {MAX_GRANTS}", param="access_grants"
        )
    return tuple(dict.fromkeys(_grant(row, f"access_grants[{index}]") for index, row in enumerate(value)))


def from_access_control(value: Any) -> tuple[Grant, ...]:
    """Return the grants of an older `access_control`: None is readable by everybody, {} is private."""
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


def _grant(row: Any, where: str) -> Grant:
    if not isinstance(row, Mapping):
        raise invalid(f"cannot accept {where}: expected an object", param=where)
    names = ("principal_type", "principal_id", "permission")
    fields = [field for field in map(row.get, names) if isinstance(field, str)]
    if len(fields) != len(names):
        raise invalid(
            f"cannot accept {where}: expected strings principal_type, principal_id and permission",
            param=where,
        )
    grant = Grant(*fields)
    check_grant(grant)
    clean(grant.principal_id, f"{where}.principal_id", longest=MAX_PRINCIPAL_CHARACTERS)
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
