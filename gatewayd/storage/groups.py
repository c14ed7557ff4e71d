"""Store of groups and their members."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from tortoise.functions import Count

from gatewayd.accounts.records import Group, MembershipSource, Role
from gatewayd.errors import not_found
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, encode_optional, fits_columns
from gatewayd.storage.engine.readers import QueryReader, read_column
from gatewayd.storage.engine.statements import SqlStatement, storable_ids
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.scim import identity_index
from gatewayd.storage.tables.accounts import GroupRow, MembershipRow, UserRow
from gatewayd.text import casefold_nfc

BATCH_SIZE: Final = 500
# A member without a display name of the source has the name of the user.
ON_CONFLICT_RENAME: Final = (
    "(group_id, user_id, source) DO UPDATE SET display = excluded.display WHERE excluded.display <> "
    "COALESCE(group_members.display, (SELECT COALESCE(u.display_name, u.name) FROM users u"
    " WHERE u.id = excluded.user_id))"
)


MEMBER_IDS: Final = (
    "SELECT u.id FROM users u WHERE u.id IN (SELECT user_id FROM group_members WHERE group_id = {group})"
    " ORDER BY u.name_key, u.id"
)
COUNT_OUTSIDE: Final = (
    "SELECT COUNT(*) FROM users u WHERE u.role <> {admin}"
    " AND u.id IN (SELECT user_id FROM group_members WHERE group_id = {group})"
    " AND u.id NOT IN (SELECT user_id FROM group_members WHERE group_id {others})"
)


class TortoiseGroups:
    """Implements `accounts.interfaces.GroupStore`.

    `reader`, if present, runs the queries over all members of a group.
    """

    def __init__(self, reader: QueryReader | None = None) -> None:
        self._reader = reader

    async def add(self, group: Group) -> None:
        """Insert a group; conflict when the id, the name (case-insensitive) or an external id is taken."""
        async with write_transaction("add the group"):
            await GroupRow(**_columns(group)).save(force_create=True)
            await identity_index.update_lookups(
                {"group_id": group.id}, identity_index.NO_LOOKUPS, identity_index.of_group(group)
            )

    async def find(self, group_id: str) -> Group | None:
        """Return the group with this id."""
        if not fits_columns(GroupRow, id=group_id):
            return None
        with translate_errors("read a group"):
            row = await GroupRow.filter(id=group_id).first()
        return None if row is None else group_from_row(row)

    async def find_by_name(self, name: str) -> Group | None:
        """Return the group with this name, case-insensitive."""
        if not fits_columns(GroupRow, name=name):
            return None
        with translate_errors("read a group"):
            row = await GroupRow.filter(name_key=casefold_nfc(name)).first()
        return None if row is None else group_from_row(row)

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, by name."""
        wanted = GroupRow.all()
        with translate_errors("list groups"):
            if user_id is not None:
                mine = (await self.list_group_ids([user_id])).get(user_id, ())
                wanted = GroupRow.filter(id__in=list(mine))
                if not mine:
                    return []
            rows = await wanted.order_by("name_key")
        return [group_from_row(row) for row in rows]

    async def change(self, group: Group) -> bool:
        """Write every field, and the external ids if they changed; raises the errors of `add`."""
        columns = _columns(group)
        del columns["id"]
        async with write_transaction("change the group"):
            row = await _locked(group.id)
            if row is None:
                return False
            await GroupRow.filter(id=group.id).update(**columns)
            before, after = identity_index.of_group(group_from_row(row)), identity_index.of_group(group)
            await identity_index.update_lookups({"group_id": group.id}, before, after)
        return True

    async def remove(self, group_id: str) -> bool:
        """Delete a group; a foreign key deletes its memberships."""
        if not fits_columns(GroupRow, id=group_id):
            return False
        async with write_transaction("remove the group"):
            return await GroupRow.filter(id=group_id).delete() > 0

    async def list_member_ids(self, group_id: str) -> Sequence[str]:
        """Return the ids of the members by name, in one statement."""
        if not fits_columns(GroupRow, id=group_id):
            return []
        statement = SqlStatement(GroupRow._meta.db)
        with translate_errors("list members"):
            return await read_column(
                self._reader, statement, MEMBER_IDS.format(group=statement.bind(group_id))
            )

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the group ids of each of the users, in one query per 500 users."""
        found: dict[str, dict[str, None]] = {}
        with translate_errors("list memberships"):
            for batch in _batches(user_ids):
                members = MembershipRow.filter(user_id__in=batch).order_by("id")
                for user_id, group_id in await members.values_list("user_id", "group_id"):
                    found.setdefault(str(user_id), {})[str(group_id)] = None
        return {user_id: list(group_ids) for user_id, group_ids in found.items()}

    async def list_sources(
        self, group_id: str, user_ids: Sequence[str]
    ) -> Mapping[str, Sequence[MembershipSource]]:
        """Return the sources of each user's membership in a group, in one query per 500 users."""
        if not fits_columns(GroupRow, id=group_id):
            return {}
        found: dict[str, list[MembershipSource]] = {}
        with translate_errors("list members"):
            for batch in _batches(user_ids):
                members = MembershipRow.filter(group_id=group_id, user_id__in=batch).order_by("id")
                for user_id, source in await members.values_list("user_id", "source"):
                    found.setdefault(str(user_id), []).append(MembershipSource(source))
        return found

    async def count_by_source(self, group_id: str) -> Mapping[MembershipSource, int]:
        """Return the number of members of a group by source."""
        if not fits_columns(GroupRow, id=group_id):
            return {}
        with translate_errors("count members"):
            members = MembershipRow.filter(group_id=group_id).group_by("source")
            counted = await members.annotate(users=Count("id")).values_list("source", "users")
        return {MembershipSource(source): users for source, users in counted}

    async def count_members_outside(self, group_id: str, group_ids: Sequence[str]) -> int:
        """Return the number of members, without administrators, that are in none of the other groups."""
        if not fits_columns(GroupRow, id=group_id):
            return 0
        statement = SqlStatement(GroupRow._meta.db)
        query = COUNT_OUTSIDE.format(
            admin=statement.bind(Role.ADMIN.value),
            group=statement.bind(group_id),
            others=statement.among(storable_ids(GroupRow, group_ids)),
        )
        with translate_errors("count members"):
            [count] = await read_column(self._reader, statement, query)
        return int(count)

    async def count_members(
        self, group_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> Mapping[str, int]:
        """Return the number of members by group, in one query per 500 groups."""
        found: dict[str, int] = {}
        by_source = {} if source is None else {"source": source.value}
        with translate_errors("count members"):
            for batch in _batches(group_ids):
                members = MembershipRow.filter(group_id__in=batch, **by_source).group_by("group_id")
                counted = members.annotate(users=Count("user_id", distinct=True))
                found |= dict(await counted.values_list("group_id", "users"))
        return found

    async def add_members(
        self,
        group_id: str,
        user_ids: Sequence[str],
        *,
        source: MembershipSource,
        at: int,
        displays: Mapping[str, str] | None = None,
    ) -> int:
        """Add existing users as members from a source, write their display names, and count the changes.

        Runs one statement per 500 users, independent of the number of members. Raises not_found without the
        group.
        """
        adding = _Adding(group_id, source, at, displays or {})
        async with _changing_members(group_id, "add members") as client:
            return sum([await _add(client, batch, adding) for batch in _batches(user_ids)])

    async def keep_members(self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource) -> int:
        """Remove all members from a source except these; return their number; not_found without the group."""
        async with _changing_members(group_id, "remove members") as client:
            statement = SqlStatement(client)
            removed, _ = await client.execute_query(
                f"DELETE FROM group_members WHERE group_id = {statement.bind(group_id)}"  # noqa: S608 - no values
                f" AND source = {statement.bind(source.value)}"
                f" AND NOT user_id {statement.among(storable_ids(UserRow, user_ids))}",
                statement.values,
            )
            return int(removed)

    async def remove_members(
        self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> int:
        """Remove members from a source (None: any); return their number; not_found without the group."""
        async with _changing_members(group_id, "remove members") as client:
            return sum([await _remove(client, group_id, batch, source) for batch in _batches(user_ids)])

    async def touch(self, group_id: str, *, at: int, modified_us: int) -> None:
        """Write the time of a group's last change."""
        if not fits_columns(GroupRow, id=group_id):
            return
        async with write_transaction("change the group"):
            await GroupRow.filter(id=group_id).update(updated_at=at, modified_us=modified_us)


async def _locked(group_id: str) -> GroupRow | None:
    """Return a group, locked against other changes of it and its members until the transaction ends.

    With the lock each change counts only its own rows, and two changes cannot deadlock on members.
    """
    return await GroupRow.filter(id=group_id).select_for_update(no_key=True).first()


@asynccontextmanager
async def _changing_members(group_id: str, what: str) -> AsyncIterator[Any]:
    """Begin a transaction that has locked a group; not_found without the group."""
    if not fits_columns(GroupRow, id=group_id):
        raise not_found("group", group_id)
    async with write_transaction(what) as client:
        if await _locked(group_id) is None:
            raise not_found("group", group_id)
        yield client


@dataclass(frozen=True, slots=True)
class _Adding:
    """Parameters of an addition: group, source, time, and the source's display names by user id."""

    group_id: str
    source: MembershipSource
    at: int
    displays: Mapping[str, str]


async def _add(client: Any, user_ids: Sequence[str], adding: _Adding) -> int:
    """Add users and write their display names; return how many were added or renamed."""
    column = MembershipRow._meta.fields_map["display"]
    displays = [column.to_db_value(adding.displays.get(user_id), MembershipRow) for user_id in user_ids]
    one, two, three, *places = [placeholder(client, place) for place in range(1, 2 * len(user_ids) + 4)]
    # PostgreSQL assumes the type text for a parameter in VALUES.
    sent = ", ".join(
        f"({user_id}, CAST({display} AS TEXT))"
        for user_id, display in zip(places[::2], places[1::2], strict=True)
    )
    # The order makes all transactions lock the users in the same order.
    query = (
        f"WITH sent (user_id, display) AS (VALUES {sent}) "  # noqa: S608 - no values
        "INSERT INTO group_members (group_id, user_id, source, created_at, display) "
        f"SELECT {one}, u.id, {two}, CAST({three} AS BIGINT), sent.display "
        "FROM sent JOIN users u ON u.id = sent.user_id WHERE TRUE ORDER BY u.id "
        f"ON CONFLICT {ON_CONFLICT_RENAME if any(displays) else 'DO NOTHING'} RETURNING user_id"
    )
    named = [value for pair in zip(user_ids, displays, strict=True) for value in pair]
    values = [adding.group_id, adding.source.value, adding.at, *named]
    return len(await client.execute_query_dict(query, values))


async def _remove(
    client: Any, group_id: str, user_ids: Sequence[str], source: MembershipSource | None
) -> int:
    values = [group_id, *user_ids, *([source.value] if source else [])]
    one, *places = [placeholder(client, place) for place in range(1, len(values) + 1)]
    by_source = f" AND source = {places.pop()}" if source else ""
    query = (
        f"DELETE FROM group_members WHERE group_id = {one} AND user_id IN ({', '.join(places)})"  # noqa: S608
        f"{by_source} RETURNING user_id"
    )
    # Count a user once, independent of the number of their sources.
    return len({row["user_id"] for row in await client.execute_query_dict(query, values)})


def _batches(ids: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return the storable ids of users or groups, each once, in batches for one statement."""
    ids = [each for each in dict.fromkeys(ids) if fits_columns(UserRow, id=each)]
    return [ids[start : start + BATCH_SIZE] for start in range(0, len(ids), BATCH_SIZE)]


def _columns(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "name_key": casefold_nfc(group.name),
        "description": group.description,
        "user_id": group.user_id,
        "permissions": encode(group.permissions, "permissions"),
        "data": encode(group.data, "data"),
        "meta": encode(group.meta, "meta"),
        "scim": encode_optional(group.scim, "scim"),
        "updated_at": group.updated_at,
        "created_at": group.created_at,
        "modified_us": group.modified_us,
    }


def group_from_row(row: GroupRow) -> Group:
    """Return the record of a row."""
    return Group(
        id=row.id,
        name=row.name,
        description=row.description,
        user_id=row.user_id,
        permissions=decode(row.permissions, f"the permissions of group {row.id}"),
        data=decode(row.data, f"the data of group {row.id}"),
        meta=decode(row.meta, f"the meta of group {row.id}"),
        scim=decode(row.scim, f"the scim of group {row.id}"),
        updated_at=row.updated_at,
        created_at=row.created_at,
        modified_us=row.modified_us,
    )
