"""The directory of provisioning in memory: the contract of gatewayd.scim.interfaces without a database."""

from collections.abc import Mapping, Sequence

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.records import Group, MembershipSource, User
from gatewayd.scim.filters.conditions import Value
from gatewayd.scim.records import (
    GroupEntry,
    Item,
    MembershipReference,
    ResourceCounts,
    ResourcePage,
    ResourceQuery,
    ResourceType,
    UserEntry,
)
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.accounts.scim_conditions import elements, evaluate, fold, is_exact, singles


class MemoryDirectory:
    """Scans everything for every question; `asked` names the questions in their order."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.asked: list[str] = []

    async def list_users(self, query: ResourceQuery) -> ResourcePage[User]:
        self.asked.append("list_users")
        users = sorted(self._memory.tables.users.values(), key=lambda user: user.id)
        groups = self._groups_of()
        entries = [UserEntry(user, groups.get(user.id, ())) for user in users]
        found = [entry for entry in entries if _fits(entry, query)]
        return _page([entry.user for entry in _sorted(found, query)], query)

    async def list_groups(self, query: ResourceQuery) -> ResourcePage[Group]:
        self.asked.append("list_groups")
        groups = sorted(self._memory.tables.groups.values(), key=lambda group: group.id)
        members = self._members_of()
        entries = [GroupEntry(group, members.get(group.id, ())) for group in groups]
        found = [entry for entry in entries if _fits(entry, query)]
        return _page([entry.group for entry in _sorted(found, query)], query)

    async def list_groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        self.asked.append("list_groups_of")
        return _only(self._groups_of(), user_ids)

    async def list_members_of(self, group_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        self.asked.append("list_members_of")
        return _only(self._members_of(), group_ids)

    async def list_known(self, user_ids: Sequence[str]) -> frozenset[str]:
        self.asked.append("list_known")
        return frozenset(user_ids) & self._memory.tables.users.keys()

    async def count(self) -> ResourceCounts:
        users = self._memory.tables.users.values()
        groups = self._memory.tables.groups.values()
        return ResourceCounts(
            users=len(users),
            active_users=sum(user.is_verified for user in users),
            provisioned_users=sum(
                user.identity.user_name is not None or _has_external_id(user) for user in users
            ),
            groups=len(groups),
            provisioned_groups=sum(_has_external_id(group) for group in groups),
            memberships=len(self._memberships()),
        )

    def _memberships(self) -> list[tuple[str, str]]:
        members = self._memory.tables.members
        return sorted((group, user) for group, user, source in members if source is MembershipSource.SCIM)

    def _groups_of(self) -> dict[str, list[MembershipReference]]:
        found: dict[str, list[MembershipReference]] = {}
        for group_id, user_id in self._memberships():
            name = self._memory.tables.groups[group_id].name
            found.setdefault(user_id, []).append(MembershipReference(group_id, name))
        return found

    def _members_of(self) -> dict[str, list[MembershipReference]]:
        found: dict[str, list[MembershipReference]] = {}
        for group_id, user_id in self._memberships():
            user = self._memory.tables.users[user_id]
            sent = self._memory.tables.displays.get((group_id, user_id, MembershipSource.SCIM))
            display = sent or display_identity(user).display_name or user.name
            found.setdefault(group_id, []).append(MembershipReference(user_id, display))
        return found


def _fits(entry: UserEntry | GroupEntry, query: ResourceQuery) -> bool:
    if query.condition is None:
        return True
    return evaluate(query.condition, entry, query.provider, by_subject=query.by_subject)


def _sorted(entries: list[Item], query: ResourceQuery) -> list[Item]:
    sort = query.sort
    if sort is None:
        return entries
    keyed = [(_key(entry, sort, query.provider), entry) for entry in entries]
    present = [(key, entry) for key, entry in keyed if key is not None]
    absent = [entry for key, entry in keyed if key is None]
    present.sort(key=lambda pair: pair[0], reverse=query.descending)
    ordered = [entry for _, entry in present]
    return [*absent, *ordered] if query.descending else [*ordered, *absent]


def _key(entry: object, sort: str, provider: str) -> Value | None:
    assert isinstance(entry, UserEntry | GroupEntry)
    attribute = sort.split(".")[0]
    rows = elements(entry).get(attribute)
    values = singles(entry, provider)[sort] if rows is None else _first(rows, sort)
    value = values[0] if values else None
    resource = ResourceType.USER if isinstance(entry, UserEntry) else ResourceType.GROUP
    return fold(value) if isinstance(value, str) and not is_exact(resource, sort) else value


def _first(rows: Sequence[Mapping[str, Sequence[Value]]], sort: str) -> Sequence[Value]:
    primary = [row for row in rows if row.get("emails.primary") == (True,)]
    chosen = [*primary, *rows]
    return chosen[0][sort] if chosen else ()


def _page(items: list[Item], query: ResourceQuery) -> ResourcePage[Item]:
    return ResourcePage(items[query.offset : query.offset + query.limit], len(items))


def _only(
    found: Mapping[str, list[MembershipReference]], ids: Sequence[str]
) -> Mapping[str, Sequence[MembershipReference]]:
    assert len(ids) <= 200
    return {each: found[each] for each in ids if each in found}


def _has_external_id(item: User | Group) -> bool:
    return any("external_id" in entry for entry in (item.scim or {}).values())
