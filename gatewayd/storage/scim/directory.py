"""SCIM directory: pages of users and groups by condition, each in at most two statements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tortoise.models import Model

from gatewayd.accounts.records import Group, MembershipSource, User
from gatewayd.scim.records import (
    MembershipReference,
    ResourceCounts,
    ResourcePage,
    ResourceQuery,
    ResourceType,
)
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import MAX_WHOLE
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.engine.statements import SqlStatement, storable_ids
from gatewayd.storage.groups import group_from_row
from gatewayd.storage.scim.predicates import ConditionContext, compile_condition, compile_order
from gatewayd.storage.tables.accounts import GroupRow, UserRow
from gatewayd.storage.users import user_from_row as user_of

BATCH_SIZE: Final = 1000

SELECT_GROUPS: Final = (
    "SELECT m.user_id AS owner, g.id AS id, g.name AS display"
    " FROM group_members m JOIN groups g ON g.id = m.group_id"
    " WHERE m.source = {source} AND m.user_id IN ({ids}) ORDER BY m.user_id, m.group_id"
)
SELECT_MEMBERS: Final = (
    "SELECT m.group_id AS owner, u.id AS id, COALESCE(m.display, u.display_name, u.name) AS display"
    " FROM group_members m JOIN users u ON u.id = m.user_id"
    " WHERE m.source = {source} AND m.group_id IN ({ids}) AND (m.group_id, m.user_id) > ({after})"
    " ORDER BY m.group_id, m.user_id LIMIT {limit}"
)
SELECT_KNOWN_USERS: Final = "SELECT id FROM users WHERE id IN ({ids})"
SELECT_COUNTS: Final = (
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
class _ResourceTable:
    """A resource type with its row class, table name and alias in statements."""

    resource: ResourceType
    row: type[Model]
    table: str
    alias: str


USERS: Final = _ResourceTable(ResourceType.USER, UserRow, "users", "u")
GROUPS: Final = _ResourceTable(ResourceType.GROUP, GroupRow, "groups", "g")


class TortoiseDirectory:
    """Implements `scim.interfaces.Directory`.

    `reader`, if present, lists users and groups: a filter without an index is slow, and on SQLite all other
    statements would wait for the one connection. The reader does not see uncommitted changes.
    """

    def __init__(self, reader: QueryReader | None = None) -> None:
        self._reader = reader

    async def list_users(self, query: ResourceQuery) -> ResourcePage[User]:
        """Return one page of users."""
        with translate_errors("list users"):
            return await _page(USERS, query, user_of, self._reader)

    async def list_groups(self, query: ResourceQuery) -> ResourcePage[Group]:
        """Return one page of groups, without their member counts."""
        with translate_errors("list groups"):
            return await _page(GROUPS, query, group_from_row, self._reader)

    async def list_groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the groups of each of the users, in the order of their creation."""
        with translate_errors("list memberships"):
            return await _groups_of(user_ids)

    async def list_members_of(self, group_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the members of each of the groups, in the order of their creation.

        Runs one statement per BATCH_SIZE members, so that other statements run in between.
        """
        known = storable_ids(GROUPS.row, group_ids)
        found: dict[str, list[MembershipReference]] = {}
        after, count = ("", ""), BATCH_SIZE if known else 0
        with translate_errors("list members"):
            while count == BATCH_SIZE:
                rows = await _members_after(known, after)
                for row in rows:
                    found.setdefault(row["owner"], []).append(MembershipReference(row["id"], row["display"]))
                count = len(rows)
                after = (rows[-1]["owner"], rows[-1]["id"]) if rows else after
        return found

    async def list_known(self, user_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids that belong to users."""
        ids = storable_ids(UserRow, user_ids)
        known: set[str] = set()
        with translate_errors("list users"):
            for start in range(0, len(ids), BATCH_SIZE):
                statement = SqlStatement(USERS.row._meta.db)
                found = await statement.run(
                    SELECT_KNOWN_USERS.format(ids=statement.bind_all(ids[start : start + BATCH_SIZE]))
                )
                known.update(row["id"] for row in found)
        return frozenset(known)

    async def count(self) -> ResourceCounts:
        """Return the counts of users, groups and memberships, in one statement."""
        with translate_errors("count users and groups"):
            statement = SqlStatement(USERS.row._meta.db)
            [row] = await statement.run(
                SELECT_COUNTS.format(source=statement.bind(MembershipSource.SCIM.value))
            )
        return ResourceCounts(**row)


async def _page(
    kind: _ResourceTable, query: ResourceQuery, record_of: Callable[[Any], Item], reader: QueryReader | None
) -> ResourcePage[Item]:
    """Return a page; the total is counted only when the page does not contain the last item.

    The ids of the page are selected first, from an index only, so that rows before the page are not read.
    """
    offset, limit = (min(max(number, 0), MAX_WHOLE - 1) for number in (query.offset, query.limit))
    statement = SqlStatement(kind.row._meta.db)
    scope = ConditionContext(
        kind.resource, statement.client.capabilities.dialect, statement.bind, query.provider, query.by_subject
    )
    table = f"{kind.table} {kind.alias}"
    where = "" if query.condition is None else f" WHERE {compile_condition(query.condition, scope)}"
    counting = statement.copy()
    columns = list(kind.row._meta.fields_db_projection.values())
    found: Sequence[Mapping[str, Any]] = []
    if limit > 0:
        order = _order(kind, query, scope)
        ids = f"SELECT {kind.alias}.id FROM {table}{where} ORDER BY {order}"  # noqa: S608 - our own text
        window = f"LIMIT {statement.bind(limit + 1)} OFFSET {statement.bind(offset)}"
        shown = ", ".join(f"{kind.alias}.{column}" for column in columns)
        page = f"SELECT {shown} FROM {table} WHERE {kind.alias}.id IN ({ids} {window}) ORDER BY {order}"  # noqa: S608
        found = await _read(statement, page, columns, reader)
    items = [record_of(kind.row._init_from_db(**row)) for row in found[:limit]]
    if 0 < len(found) <= limit or (limit > 0 and not found and offset == 0):
        return ResourcePage(items, offset + len(items))
    [row] = await _read(counting, f"SELECT COUNT(*) AS total FROM {table}{where}", ["total"], reader)  # noqa: S608
    # The count may be lower, after concurrent removals.
    return ResourcePage(items, max(row["total"], offset + len(items) if items else 0))


async def _read(
    statement: SqlStatement, sql: str, columns: Sequence[str], reader: QueryReader | None
) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a statement that selects these columns."""
    if reader is None:
        return await statement.run(sql)
    rows = await reader.rows(sql, *statement.values)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _order(kind: _ResourceTable, query: ResourceQuery, scope: ConditionContext) -> str:
    identifier = f"{kind.alias}.id"
    if query.sort is None:
        return identifier
    order = compile_order(query.sort, scope)
    direction = "DESC" if query.descending else "ASC"
    absent = f"{order.absent} {direction}, " if order.absent else ""
    return f"{absent}{order.sql} {direction}, {identifier}"


async def _groups_of(user_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
    """Return the groups of users, by user id."""
    known = storable_ids(USERS.row, user_ids)
    if not known:
        return {}
    statement = SqlStatement(USERS.row._meta.db)
    source, ids = statement.bind(MembershipSource.SCIM.value), statement.bind_all(known)
    found: dict[str, list[MembershipReference]] = {}
    for row in await statement.run(SELECT_GROUPS.format(source=source, ids=ids)):
        found.setdefault(row["owner"], []).append(MembershipReference(row["id"], row["display"]))
    return found


async def _members_after(group_ids: Sequence[str], after: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the next BATCH_SIZE members of groups after (group id, user id), sorted by these ids."""
    statement = SqlStatement(GROUPS.row._meta.db)
    return await statement.run(
        SELECT_MEMBERS.format(
            source=statement.bind(MembershipSource.SCIM.value),
            ids=statement.bind_all(group_ids),
            after=statement.bind_all(after),
            limit=statement.bind(BATCH_SIZE),
        )
    )
