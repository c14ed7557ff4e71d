"""Access lists: the table `access_grant` of newer versions, the column `access_control` of older ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import GatewayError
from gatewayd.imports.rows import ForeignRow
from gatewayd.knowledge.grants import from_access_control, read_grants

GRANTS: Final = "access_grant"
CONTROL: Final = "access_control"


@dataclass(slots=True)
class KnownPrincipals:
    """The ids of users and groups here, by their ids there."""

    users: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)

    def find(self, grant: Grant) -> str | None:
        """Return the id here of whom a grant names."""
        if grant.principal_type == "group":
            return self.groups.get(grant.principal_id)
        return EVERYBODY if grant.principal_id == EVERYBODY else self.users.get(grant.principal_id)

    def translate(self, grants: Iterable[Grant], changes: list[str]) -> tuple[Grant, ...]:
        """Return grants with the ids here; one to somebody who is not here is noted and left out."""
        found: dict[Grant, None] = {}
        for grant in grants:
            principal = self.find(grant)
            if principal is None:
                who = f"{grant.principal_type} {grant.principal_id}"
                changes.append(f"the {who} of its access list is not here")
            else:
                found[replace(grant, principal_id=principal)] = None
        return tuple(found)


class AccessLists:
    """The rows of the table of grants, by the kind and id of their resource; None without the table."""

    def __init__(self, rows: Iterable[ForeignRow] | None) -> None:
        self._has_table = rows is not None
        self._rows: dict[tuple[str, str], list[ForeignRow]] = {}
        for row in rows or ():
            self._rows.setdefault((row.text("resource_type"), row.text("resource_id")), []).append(row)

    def of(self, kind: str, row: ForeignRow, known: KnownPrincipals, changes: list[str]) -> tuple[Grant, ...]:
        """Return the access list of a resource of a kind, `knowledge`, `model` or `tool`.

        A grant to somebody who is not here, or of another form, is noted and left out.
        """
        if not self._has_table and row.has(CONTROL):
            try:
                grants: Sequence[Grant] = from_access_control(row.json(CONTROL))
            except GatewayError as error:
                # Without its list a resource is its owner's alone.
                changes.append(error.message)
                return ()
        else:
            grants = _read_rows(self._rows.get((kind, row.text("id")), ()), changes)
        return known.translate(grants, changes)


def _read_rows(rows: Iterable[ForeignRow], changes: list[str]) -> Sequence[Grant]:
    found: list[Grant] = []
    for row in rows:
        fields: Mapping[str, str] = {
            name: row.text(name) for name in ("principal_type", "principal_id", "permission")
        }
        try:
            found += read_grants([fields])
        except GatewayError as error:
            changes.append(error.message)
    return found
