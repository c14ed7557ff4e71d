"""The account stores in memory: the contract of gatewayd.accounts.interfaces without a database."""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens
from gatewayd.accounts.links.records import LinkKind, OneTimeLink
from gatewayd.accounts.records import ApiKey, Group, MembershipSource, Role, StoredSession, User
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.scim.records import StoredScimToken
from gatewayd.text import casefold_nfc


@dataclass
class Tables:
    """Everything that is stored."""

    users: dict[str, User] = field(default_factory=dict)
    passwords: dict[str, str | None] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    members: dict[tuple[str, str, MembershipSource], int] = field(default_factory=dict)
    displays: dict[tuple[str, str, MembershipSource], str] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    revoked: dict[str, tuple[str, int]] = field(default_factory=dict)
    sessions: dict[str, StoredSession] = field(default_factory=dict)
    links: dict[str, OneTimeLink] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    identities: dict[tuple[str, str], LinkedIdentity] = field(default_factory=dict)
    tokens: dict[tuple[str, str], ProviderTokens] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    scim_tokens: dict[str, StoredScimToken] = field(default_factory=dict)

    def copied(self) -> "Tables":
        """Return a copy with the same records, which nothing changes."""
        return type(self)(**{name: copy.copy(table) for name, table in vars(self).items()})

    def forget_displays(self) -> None:
        self.displays = {member: each for member, each in self.displays.items() if member in self.members}


class Memory:
    """A database of one writer: blocks exclude each other, roll back on failure and may nest.

    While `is_away` is set, every block fails as one of a database that cannot be reached.
    """

    def __init__(self) -> None:
        self.tables = Tables()
        self.is_away = False
        self._writer = asyncio.Lock()
        self._inside: ContextVar[bool] = ContextVar("inside", default=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self.is_away:
            reason = "cannot begin the change: the database cannot be reached"
            raise GatewayError(ErrorKind.UNAVAILABLE, reason, retry_after=2)
        if self._inside.get():
            before = self.tables.copied()
            try:
                yield
            except BaseException:
                self.tables = before
                raise
            return
        async with self._writer:
            token = self._inside.set(True)
            before = self.tables.copied()
            try:
                yield
            except BaseException:
                self.tables = before
                raise
            finally:
                self._inside.reset(token)

    def exclusive(self, name: str) -> Any:
        return self.transaction()

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[None]:
        try:
            async with self.transaction():
                yield
                raise _UndoError
        except _UndoError:
            pass


class _UndoError(Exception):
    pass


def names(providers: Mapping[str, Any] | None, member: str) -> set[tuple[str, str]]:
    """Return what each provider calls somebody."""
    entries = {name: entry for name, entry in (providers or {}).items() if isinstance(entry, dict)}
    found = {(name, entry.get(member)) for name, entry in entries.items() if entry.get(member)}
    return {(name, value) for name, value in found if isinstance(value, str)}


def taken(what: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot store: the {what} is taken", param=what, code="taken")


class MemoryUsers:
    """`read` has how many users each list had that was read."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.read: list[int] = []

    @property
    def _rows(self) -> dict[str, User]:
        return self._memory.tables.users

    async def add(self, user: User, password_hash: str | None) -> None:
        async with self._memory.transaction():
            if user.id in self._rows:
                raise taken("id")
            self._check(user)
            self._rows[user.id] = user
            self._memory.tables.passwords[user.id] = password_hash

    async def find(self, user_id: str) -> User | None:
        await asyncio.sleep(0)
        return self._rows.get(user_id)

    async def find_by_email(self, email: str) -> User | None:
        return next((user for user in self._rows.values() if user.email == email), None)

    async def find_password_hash(self, user_id: str) -> str | None:
        return self._memory.tables.passwords.get(user_id)

    async def list(
        self,
        *,
        query: str = "",
        order_by: str = "created_at",
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[User], int]:
        found = self._found(query)
        found.sort(key=lambda user: (getattr(user, order_by), user.id), reverse=descending)
        page = found[offset : None if limit is None else offset + limit]
        self.read.append(len(page))
        return page, len(found)

    async def list_ids(self, *, query: str = "") -> Sequence[str]:
        found = sorted(self._found(query), key=lambda user: (user.created_at, user.id))
        return [user.id for user in found]

    async def list_by_ids(self, user_ids: Sequence[str]) -> Sequence[User]:
        self.read.append(len(user_ids))
        return [self._rows[user_id] for user_id in user_ids if user_id in self._rows]

    async def change(self, user: User) -> bool:
        async with self._memory.transaction():
            if user.id not in self._rows:
                return False
            self._check(user)
            self._rows[user.id] = user
            return True

    async def set_password_hash(self, user_id: str, password_hash: str | None) -> bool:
        async with self._memory.transaction():
            if user_id not in self._rows:
                return False
            self._memory.tables.passwords[user_id] = password_hash
            return True

    async def remove(self, user_id: str) -> bool:
        async with self._memory.transaction():
            tables = self._memory.tables
            tables.passwords.pop(user_id, None)
            tables.members = {member: at for member, at in tables.members.items() if member[1] != user_id}
            tables.forget_displays()
            tables.keys = {key_id: key for key_id, key in tables.keys.items() if key.user_id != user_id}
            return tables.users.pop(user_id, None) is not None

    async def count(self) -> int:
        await asyncio.sleep(0)
        return len(self._rows)

    async def count_active_admins(self) -> int:
        return sum(user.active and user.role is Role.ADMIN for user in self._rows.values())

    async def find_first_admin_id(self) -> str | None:
        admins = [user for user in self._rows.values() if user.role is Role.ADMIN]
        return min(admins, key=lambda user: (user.created_at, user.id)).id if admins else None

    async def touch(self, seen: Mapping[str, int]) -> None:
        async with self._memory.transaction():
            for user_id in seen.keys() & self._rows.keys():
                user = self._rows[user_id]
                latest = max(user.last_active_at, seen[user_id])
                self._rows[user_id] = replace(user, last_active_at=latest)

    def _found(self, query: str) -> "Sequence[User]":
        wanted = query.lower()
        return [user for user in self._rows.values() if wanted in user.name.lower() or wanted in user.email]

    def _check(self, user: User) -> None:
        user_name = self._user_name(user)
        external_ids, subjects = names(user.scim, "external_id"), names(user.oauth, "sub")
        for other in self._rows.values():
            if other.id == user.id:
                continue
            if other.email == user.email:
                raise taken("email")
            if user.username is not None and other.username == user.username:
                raise taken("username")
            if self._user_name(other) == user_name:
                raise taken("email" if user.identity.user_name is None else "user_name")
            if external_ids and names(other.scim, "external_id") & external_ids:
                raise taken("external_id")
            if subjects and names(other.oauth, "sub") & subjects:
                raise taken("subject")

    @staticmethod
    def _user_name(user: User) -> str:
        return casefold_nfc(display_identity(user).user_name or "")


class MemoryGroups:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add(self, group: Group) -> None:
        async with self._memory.transaction():
            self._check(group)
            self._memory.tables.groups[group.id] = group

    async def find(self, group_id: str) -> Group | None:
        return self._memory.tables.groups.get(group_id)

    async def find_by_name(self, name: str) -> Group | None:
        groups = self._memory.tables.groups.values()
        return next((group for group in groups if group.name.lower() == name.lower()), None)

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        await asyncio.sleep(0)
        tables = self._memory.tables
        mine = (await self.list_group_ids([user_id])).get(user_id, ()) if user_id else tables.groups
        groups = [group for group in tables.groups.values() if group.id in mine]
        return sorted(groups, key=lambda group: group.name)

    async def change(self, group: Group) -> bool:
        async with self._memory.transaction():
            if group.id not in self._memory.tables.groups:
                return False
            self._check(group)
            self._memory.tables.groups[group.id] = group
            return True

    async def remove(self, group_id: str) -> bool:
        async with self._memory.transaction():
            tables = self._memory.tables
            tables.members = {member: at for member, at in tables.members.items() if member[0] != group_id}
            tables.forget_displays()
            return tables.groups.pop(group_id, None) is not None

    async def list_member_ids(self, group_id: str) -> Sequence[str]:
        users = self._memory.tables.users
        members = [users[user_id] for user_id in await self.list_sources(group_id, list(users))]
        return [user.id for user in sorted(members, key=lambda user: (user.name, user.id))]

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, dict[str, None]] = {}
        for group_id, user_id, _ in self._memory.tables.members:
            if user_id in user_ids:
                found.setdefault(user_id, {})[group_id] = None
        return {user_id: list(group_ids) for user_id, group_ids in found.items()}

    async def count_members(
        self, group_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> Mapping[str, int]:
        members = self._memory.tables.members
        counted = {(here, user_id) for here, user_id, by in members if source in (None, by)}
        return Counter(here for here, _ in counted if here in group_ids)

    async def list_sources(
        self, group_id: str, user_ids: Sequence[str]
    ) -> Mapping[str, Sequence[MembershipSource]]:
        found: dict[str, list[MembershipSource]] = {}
        for here, user_id, source in self._memory.tables.members:
            if here == group_id and user_id in user_ids:
                found.setdefault(user_id, []).append(source)
        return found

    async def count_by_source(self, group_id: str) -> Mapping[MembershipSource, int]:
        return Counter(source for here, _, source in self._memory.tables.members if here == group_id)

    async def count_members_outside(self, group_id: str, group_ids: Sequence[str]) -> int:
        tables = self._memory.tables
        elsewhere = {user_id for here, user_id, _ in tables.members if here in group_ids}
        members = {user_id for here, user_id, _ in tables.members if here == group_id}
        return sum(tables.users[user_id].role is not Role.ADMIN for user_id in members - elsewhere)

    async def add_members(
        self,
        group_id: str,
        user_ids: Sequence[str],
        *,
        source: MembershipSource,
        at: int,
        displays: Mapping[str, str] | None = None,
    ) -> int:
        async with self._memory.transaction():
            self._check_there(group_id)
            tables = self._memory.tables
            wanted = [
                (group_id, user_id, source) for user_id in dict.fromkeys(user_ids) if user_id in tables.users
            ]
            named = {member: (displays or {}).get(member[1]) for member in wanted}
            new = [member for member in wanted if member not in tables.members]
            renamed = [
                member
                for member, display in named.items()
                if member in tables.members and display and display != self._display(member)
            ]
            tables.members.update(dict.fromkeys(new, at))
            changed = {member: named[member] for member in (*new, *renamed)}
            tables.displays.update({member: display for member, display in changed.items() if display})
            return len(changed)

    async def keep_members(self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource) -> int:
        self._check_there(group_id)
        members = self._memory.tables.members
        there = [user_id for here, user_id, by in members if (here, by) == (group_id, source)]
        gone = [user_id for user_id in there if user_id not in user_ids]
        return await self.remove_members(group_id, gone, source=source)

    async def remove_members(
        self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> int:
        async with self._memory.transaction():
            self._check_there(group_id)
            members = self._memory.tables.members
            gone = [
                (here, user_id, by)
                for here, user_id, by in members
                if here == group_id and user_id in user_ids and source in (None, by)
            ]
            for member in gone:
                del members[member]
            self._memory.tables.forget_displays()
            return len({user_id for _, user_id, _ in gone})

    def _check_there(self, group_id: str) -> None:
        if group_id not in self._memory.tables.groups:
            raise not_found("group", group_id)

    async def touch(self, group_id: str, *, at: int, modified_us: int) -> None:
        async with self._memory.transaction():
            groups = self._memory.tables.groups
            if group_id in groups:
                groups[group_id] = replace(groups[group_id], updated_at=at, modified_us=modified_us)

    def _display(self, member: tuple[str, str, MembershipSource]) -> str:
        user = self._memory.tables.users[member[1]]
        return self._memory.tables.displays.get(member) or display_identity(user).display_name or user.name

    def _check(self, group: Group) -> None:
        for other in self._memory.tables.groups.values():
            if other.id == group.id:
                continue
            if other.name.lower() == group.name.lower():
                raise taken("name")
            if names(other.scim, "external_id") & names(group.scim, "external_id"):
                raise taken("external_id")


class MemoryKeys:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add(self, key: ApiKey) -> None:
        async with self._memory.transaction():
            for other in self._memory.tables.keys.values():
                if other.user_id == key.user_id and other.name.lower() == key.name.lower():
                    raise taken("name")
            self._memory.tables.keys[key.id] = key

    async def find(self, key_id: str) -> ApiKey | None:
        return self._memory.tables.keys.get(key_id)

    async def find_by_digest(self, digest: str) -> ApiKey | None:
        await asyncio.sleep(0)
        return next((key for key in self._memory.tables.keys.values() if key.digest == digest), None)

    async def list(self, *, user_id: str | None = None) -> Sequence[ApiKey]:
        keys = self._memory.tables.keys.values()
        wanted = [key for key in keys if user_id is None or key.user_id == user_id]
        return sorted(wanted, key=lambda key: key.created_at)

    async def remove(self, key_id: str) -> bool:
        async with self._memory.transaction():
            return self._memory.tables.keys.pop(key_id, None) is not None

    async def touch(self, seen: Mapping[str, int]) -> None:
        async with self._memory.transaction():
            keys = self._memory.tables.keys
            for key_id in seen.keys() & keys.keys():
                latest = max(keys[key_id].last_used_at or 0, seen[key_id])
                keys[key_id] = replace(keys[key_id], last_used_at=latest)


class MemoryRevocations:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add(self, jti: str, user_id: str, expires_at: int) -> None:
        async with self._memory.transaction():
            self._memory.tables.revoked[jti] = (user_id, expires_at)

    async def add_all(self, sessions: Sequence[StoredSession]) -> None:
        for session in sessions:
            await self.add(session.id, session.user_id, session.expires_at)

    async def contains(self, jti: str) -> bool:
        return jti in self._memory.tables.revoked

    async def prune(self, before: int) -> int:
        async with self._memory.transaction():
            revoked = self._memory.tables.revoked
            old = [jti for jti, (_, expires_at) in revoked.items() if expires_at < before]
            for jti in old:
                del revoked[jti]
            return len(old)


class MemorySessions:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add(self, session: StoredSession) -> None:
        async with self._memory.transaction():
            if session.user_id not in self._memory.tables.users:
                raise GatewayError(ErrorKind.CONFLICT, "a row that it refers to does not exist")
            self._memory.tables.sessions[session.id] = session

    async def find(self, session_id: str) -> StoredSession | None:
        return next((each for each in self._current() if each.id == session_id), None)

    async def list(self, user_id: str, *, after: int) -> Sequence[StoredSession]:
        return [each for each in self._current() if each.user_id == user_id and each.expires_at > after]

    async def list_of_provider(
        self, provider: str, *, user_id: str | None = None, provider_session: str | None = None
    ) -> Sequence[StoredSession]:
        return [
            each
            for each in self._current()
            if each.origin.provider == provider
            and user_id in {None, each.user_id}
            and provider_session in {None, each.origin.provider_session}
        ]

    async def remove(self, session_ids: Sequence[str]) -> int:
        async with self._memory.transaction():
            sessions = self._memory.tables.sessions
            return sum(sessions.pop(session_id, None) is not None for session_id in session_ids)

    async def confirm(self, session_id: str, at: int) -> bool:
        async with self._memory.transaction():
            sessions = self._memory.tables.sessions
            if session_id in sessions:
                sessions[session_id] = replace(sessions[session_id], confirmed_at=at)
            return session_id in sessions

    async def touch(self, seen: Mapping[str, int]) -> None:
        async with self._memory.transaction():
            sessions = self._memory.tables.sessions
            for session_id in seen.keys() & sessions.keys():
                latest = max(sessions[session_id].last_seen_at, seen[session_id])
                sessions[session_id] = replace(sessions[session_id], last_seen_at=latest)

    async def prune(self, before: int) -> int:
        old = [each.id for each in self._memory.tables.sessions.values() if each.expires_at < before]
        return await self.remove(old)

    def _current(self) -> Sequence[StoredSession]:
        users = self._memory.tables.users
        found = [
            each
            for each in self._memory.tables.sessions.values()
            if each.user_id in users and users[each.user_id].token_version == each.token_version
        ]
        return sorted(found, key=lambda each: (-each.created_at, each.id))


class MemoryOneTimeLinks:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add(self, link: OneTimeLink) -> None:
        async with self._memory.transaction():
            self._memory.tables.links[link.id] = link

    async def find(self, link_id: str) -> OneTimeLink | None:
        return self._memory.tables.links.get(link_id)

    async def find_by_digest(self, digest: str) -> OneTimeLink | None:
        await asyncio.sleep(0)
        return next((link for link in self._memory.tables.links.values() if link.digest == digest), None)

    async def list(self, kind: LinkKind, *, after: int) -> Sequence[OneTimeLink]:
        links = self._memory.tables.links.values()
        found = [link for link in links if link.kind is kind and link.expires_at > after]
        return sorted(found, key=lambda link: (link.created_at, link.id))

    async def remove(self, link_id: str) -> bool:
        async with self._memory.transaction():
            return self._memory.tables.links.pop(link_id, None) is not None

    async def remove_of_user(self, user_id: str) -> int:
        links = self._memory.tables.links.values()
        mine = [link.id for link in links if link.user_id == user_id and link.kind is LinkKind.SIGN_IN]
        return sum([await self.remove(link_id) for link_id in mine])

    async def prune(self, before: int) -> int:
        old = [link.id for link in self._memory.tables.links.values() if link.expires_at < before]
        return sum([await self.remove(link_id) for link_id in old])


class MemoryValues:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def load(self) -> Mapping[str, Any]:
        return copy.deepcopy(self._memory.tables.values)

    async def put(self, values: Mapping[str, Any], *, at: int, by: str) -> None:
        async with self._memory.transaction():
            self._memory.tables.values.update(copy.deepcopy(dict(values)))

    async def remove(self, names: Sequence[str]) -> int:
        async with self._memory.transaction():
            values = self._memory.tables.values
            present = [name for name in names if name in values]
            for name in present:
                del values[name]
            return len(present)
