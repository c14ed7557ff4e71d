"""Users and groups by condition, for provisioning: a page in at most two statements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tortoise.models import Model

from gatewayd.accounts.records import Group, Source, User
from gatewayd.scim.records import Counts, Page, Query, Reference, ResourceType
from gatewayd.storage.conditions import Scope, order_of, predicate
from gatewayd.storage.failures import translated
from gatewayd.storage.fields import MAX_WHOLE
from gatewayd.storage.groups import group_of
from gatewayd.storage.rows import GroupRow, UserRow
from gatewayd.storage.statements import Statement, possible
from gatewayd.storage.users import record_of as user_of

BATCH: Final = 1000

GROUPS_OF: Final = (
    "SELECT m.user_id AS owner, g.id AS id, g.name AS display"
    " FROM group_members m JOIN groups g ON g.id = m.group_id"
    " WHERE m.source = {source} AND m.user_id IN ({ids}) ORDER BY m.user_id, m.group_id"
)
MEMBERS_OF: Final = (
    "SELECT m.group_id AS owner, u.id AS id, COALESCE(m.display, u.display_name, u.name) AS display"
    " FROM group_members m JOIN users u ON u.id = m.user_id"
    " WHERE m.source = {source} AND m.group_id IN ({ids}) ORDER BY m.group_id, m.user_id"
)
KNOWN: Final = "SELECT id FROM users WHERE id IN ({ids})"
COUNTS: Final = (
    "SELECT (SELECT COUNT(*) FROM users) AS users,"
    " (SELECT COUNT(*) FROM users WHERE active AND role <> 'pending') AS active_users,"
    " (SELECT COUNT(*) FROM users WHERE user_name IS NOT NULL"
    " OR id IN (SELECT user_id FROM user_external_ids)) AS provisioned_users,"
    " (SELECT COUNT(*) FROM groups) AS groups,"
    " (SELECT COUNT(DISTINCT group_id) FROM group_external_ids) AS provisioned_groups,"
    " (SELECT COUNT(*) FROM group_members WHERE source = {source}) AS memberships"
)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A resource type with its table, and what that is called in statements."""

    resource: ResourceType
    row: type[Model]
    table: str
    alias: str


USERS: Final = _Kind(ResourceType.USER, UserRow, "users", "u")
GROUPS: Final = _Kind(ResourceType.GROUP, GroupRow, "groups", "g")


class TortoiseDirectory:
    """Implements `scim.interfaces.Directory`."""

    async def list_users(self, query: Query) -> Page[User]:
        """Return one page of users."""
        with translated("list users"):
            return await _page(USERS, query, user_of)

    async def list_groups(self, query: Query) -> Page[Group]:
        """Return one page of groups, without their member counts."""
        with translated("list groups"):
            return await _page(GROUPS, query, group_of)

    async def list_groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Return the groups of each of the users, in the order of their creation."""
        with translated("list memberships"):
            return await _references(GROUPS_OF, USERS, user_ids)

    async def list_members_of(self, group_ids: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
        """Return the members of each of the groups, in the order of their creation."""
        with translated("list members"):
            return await _references(MEMBERS_OF, GROUPS, group_ids)

    async def list_known(self, user_ids: Sequence[str]) -> frozenset[str]:
        """Return which of the ids are users."""
        ids = possible(UserRow, user_ids)
        known: set[str] = set()
        with translated("list users"):
            for start in range(0, len(ids), BATCH):
                statement = Statement(USERS.row._meta.db)
                found = await statement.run(KNOWN.format(ids=statement.bind_all(ids[start : start + BATCH])))
                known.update(row["id"] for row in found)
        return frozenset(known)

    async def count(self) -> Counts:
        """Return how much there is, in one statement."""
        with translated("count users and groups"):
            statement = Statement(USERS.row._meta.db)
            [row] = await statement.run(COUNTS.format(source=statement.bind(Source.SCIM.value)))
        return Counts(**row)


async def _page(kind: _Kind, query: Query, record_of: Callable[[Any], Item]) -> Page[Item]:
    """Return a page; when it shows where the end is, nothing is counted.

    The ids of a page are found first, by an index alone, so that what comes before it is never read.
    """
    offset, limit = (min(max(number, 0), MAX_WHOLE - 1) for number in (query.offset, query.limit))
    statement = Statement(kind.row._meta.db)
    scope = Scope(
        kind.resource, statement.client.capabilities.dialect, statement.bind, query.provider, query.by_subject
    )
    table = f"{kind.table} {kind.alias}"
    where = "" if query.condition is None else f" WHERE {predicate(query.condition, scope)}"
    counting = statement.copy()
    found: list[dict[str, Any]] = []
    if limit > 0:
        order = _order(kind, query, scope)
        ids = f"SELECT {kind.alias}.id FROM {table}{where} ORDER BY {order}"  # noqa: S608 - our own text
        window = f"LIMIT {statement.bind(limit + 1)} OFFSET {statement.bind(offset)}"
        found = await statement.run(
            f"SELECT {kind.alias}.* FROM {table} WHERE {kind.alias}.id IN ({ids} {window}) ORDER BY {order}"  # noqa: S608
        )
    items = [record_of(kind.row._init_from_db(**row)) for row in found[:limit]]
    if 0 < len(found) <= limit or (limit > 0 and not found and offset == 0):
        return Page(items, offset + len(items))
    [row] = await counting.run(f"SELECT COUNT(*) AS total FROM {table}{where}")  # noqa: S608 - our own text
    # Others may have removed some meanwhile.
    return Page(items, max(row["total"], offset + len(items) if items else 0))


def _order(kind: _Kind, query: Query, scope: Scope) -> str:
    identifier = f"{kind.alias}.id"
    if query.sort is None:
        return identifier
    order = order_of(query.sort, scope)
    direction = "DESC" if query.descending else "ASC"
    absent = f"{order.absent} {direction}, " if order.absent else ""
    return f"{absent}{order.sql} {direction}, {identifier}"


async def _references(sql: str, owners: _Kind, ids: Sequence[str]) -> Mapping[str, Sequence[Reference]]:
    """Return the other ends of memberships by owner."""
    known = possible(owners.row, ids)
    if not known:
        return {}
    statement = Statement(owners.row._meta.db)
    source, owner_ids = statement.bind(Source.SCIM.value), statement.bind_all(known)
    found: dict[str, list[Reference]] = {}
    for row in await statement.run(sql.format(source=source, ids=owner_ids)):
        found.setdefault(row["owner"], []).append(Reference(row["id"], row["display"]))
    return found
