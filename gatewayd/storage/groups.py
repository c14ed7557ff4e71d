"""Groups and who is in them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tortoise.functions import Count
from tortoise.queryset import QuerySet

from gatewayd.accounts.records import Group, User
from gatewayd.errors import not_found
from gatewayd.storage.failures import translated
from gatewayd.storage.fields import decode, encode, fits, folded
from gatewayd.storage.rows import GroupRow, MembershipRow, UserRow
from gatewayd.storage.transactions import writing
from gatewayd.storage.users import record_of

BATCH: Final = 500


class TortoiseGroups:
    """Implements `accounts.interfaces.GroupStore`."""

    async def add(self, group: Group) -> None:
        """Insert a group; conflict when the id or the name (any case) is taken."""
        async with writing("add the group"):
            await GroupRow(**_columns(group)).save(force_create=True)

    async def find(self, group_id: str) -> Group | None:
        """Return the group with its member count."""
        if not fits(GroupRow, id=group_id):
            return None
        with translated("read a group"):
            row = await _counted(GroupRow.filter(id=group_id)).first()
        return None if row is None else _record_of(row)

    async def find_by_name(self, name: str) -> Group | None:
        """Return the group with this name, in any case."""
        if not fits(GroupRow, name=name):
            return None
        with translated("read a group"):
            row = await _counted(GroupRow.filter(name_key=folded(name))).first()
        return None if row is None else _record_of(row)

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, by name."""
        wanted = GroupRow.all()
        with translated("list groups"):
            if user_id is not None:
                mine = (await self.list_group_ids([user_id])).get(user_id, ())
                wanted = GroupRow.filter(id__in=list(mine))
                if not mine:
                    return []
            rows = await _counted(wanted).order_by("name_key")
        return [_record_of(row) for row in rows]

    async def change(self, group: Group) -> bool:
        """Write every field; conflict when the name is taken."""
        columns = _columns(group)
        del columns["id"]
        async with writing("change the group"):
            return await GroupRow.filter(id=group.id).update(**columns) > 0

    async def remove(self, group_id: str) -> bool:
        """Delete a group; its memberships go along by their foreign key."""
        if not fits(GroupRow, id=group_id):
            return False
        async with writing("remove the group"):
            return await GroupRow.filter(id=group_id).delete() > 0

    async def list_members(self, group_id: str) -> Sequence[User]:
        """Return the members by name."""
        if not fits(GroupRow, id=group_id):
            return []
        with translated("list members"):
            rows = await UserRow.filter(memberships__group_id=group_id).order_by("name_key", "id")
        return [record_of(row) for row in rows]

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the group ids of each of the users, one query for each five hundred users."""
        found: dict[str, list[str]] = {}
        with translated("list memberships"):
            for batch in _batches(user_ids):
                members = MembershipRow.filter(user_id__in=batch).order_by("id")
                for user_id, group_id in await members.values_list("user_id", "group_id"):
                    found.setdefault(str(user_id), []).append(str(group_id))
        return found

    async def add_members(self, group_id: str, user_ids: Sequence[str], *, source: str, at: int) -> int:
        """Add the existing users who are no members yet; return how many. Not_found without such a group."""
        if not fits(GroupRow, id=group_id):
            raise not_found("group", group_id)
        added = 0
        async with writing("add members"):
            # Locking the group makes those who add to it at the same time wait, so that each counts its own.
            if await GroupRow.filter(id=group_id).select_for_update().only("id").first() is None:
                raise not_found("group", group_id)
            for batch in _batches(user_ids):
                known = {row.id for row in await UserRow.filter(id__in=batch).only("id")}
                members = MembershipRow.filter(group_id=group_id, user_id__in=batch)
                known -= {str(user_id) for user_id in await members.values_list("user_id", flat=True)}
                rows = [
                    MembershipRow(group_id=group_id, user_id=user_id, source=source, created_at=at)
                    for user_id in batch
                    if user_id in known
                ]
                if rows:
                    await MembershipRow.bulk_create(rows)
                added += len(rows)
        return added

    async def remove_members(self, group_id: str, user_ids: Sequence[str]) -> int:
        """Remove members; return how many there were."""
        if not fits(GroupRow, id=group_id):
            return 0
        removed = 0
        async with writing("remove members"):
            for batch in _batches(user_ids):
                removed += await MembershipRow.filter(group_id=group_id, user_id__in=batch).delete()
        return removed


def _batches(user_ids: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return the ids that can be, each once, in parts small enough for one statement."""
    ids = [user_id for user_id in dict.fromkeys(user_ids) if fits(UserRow, id=user_id)]
    return [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]


def _counted(rows: QuerySet[GroupRow]) -> QuerySet[GroupRow]:
    return rows.annotate(members=Count("memberships"))


def _columns(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "name_key": folded(group.name),
        "description": group.description,
        "user_id": group.user_id,
        "permissions": encode(group.permissions, "permissions"),
        "data": encode(group.data, "data"),
        "meta": encode(group.meta, "meta"),
        "updated_at": group.updated_at,
        "created_at": group.created_at,
    }


def _record_of(row: Any) -> Group:
    return Group(
        id=row.id,
        name=row.name,
        description=row.description,
        user_id=row.user_id,
        permissions=decode(row.permissions, f"the permissions of group {row.id}"),
        data=decode(row.data, f"the data of group {row.id}"),
        meta=decode(row.meta, f"the meta of group {row.id}"),
        member_count=row.members,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
