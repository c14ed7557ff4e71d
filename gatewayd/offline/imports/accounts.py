"""Import of groups and users, with the keys and valves of new users."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gatewayd.accounts.passwords import is_bcrypt
from gatewayd.accounts.records import ApiKey, MembershipSource, Role, User
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.imports.accounts import ForeignUser, ForeignValves, read_group, read_keys, read_user
from gatewayd.imports.records import ImportKind
from gatewayd.imports.rows import ForeignRow
from gatewayd.imports.workspace import ENCRYPTED
from gatewayd.offline.imports.run import ImportRun
from gatewayd.plugins.source.code import check_id

ORDER: Final = ("created_at", "id")
TAKEN: Final = "an account here has this key"
NOT_NEW: Final = "its account was here before: it is taken over with a new account only"


class AccountImport:
    """Imports groups and users. An account that is here, by its id or address, stands for the user there."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run
        self._stores = run.stores
        self._groups_of: dict[str, list[str]] = {}
        """The groups here of each user there."""

    async def map_users(self) -> None:
        """Find the account of each user, or that it will be new; raise not_configured without bcrypt."""
        taken: dict[str, str] = {}
        async for values in self._run.source.rows("user", order_by=ORDER):
            row = ForeignRow(values)
            with self._run.record(ImportKind.USER, row.text("id"), row.text("email")):
                await self._map(row, taken)
        if not self._run.fallback_owner:
            self._run.fallback_owner = await self._stores.users.find_first_admin_id() or ""

    async def import_groups(self) -> None:
        """Store the new groups, with those of their members who are here already."""
        members: dict[str, list[str]] = {}
        async for values in self._run.source.rows("group_member"):
            members.setdefault(str(values["group_id"]), []).append(str(values["user_id"]))
        async for values in self._run.source.rows("group", order_by=ORDER):
            row = ForeignRow(values)
            with self._run.record(ImportKind.GROUP, row.text("id"), row.text("name")):
                await self._import_group(row, members.get(row.text("id"), []))

    async def import_users(self) -> None:
        """Store the new users, each with memberships, keys and valves."""
        async for values in self._run.source.rows("user", order_by=ORDER):
            row = ForeignRow(values)
            user_id = row.text("id")
            if user_id not in self._run.known.users:
                continue
            rows = self._run.source.rows("api_key", where={"user_id": user_id})
            keys = [ForeignRow(each) async for each in rows]
            found = read_user(row, await self._auth_of(user_id), self._run.now)
            if user_id in self._run.new_users:
                await self._import_user(found, read_keys(row, keys, user_id, self._run.now))
            else:
                here = self._run.known.users[user_id]
                await self._note_present(found, read_keys(row, keys, here, self._run.now), here)

    async def _map(self, row: ForeignRow, taken: dict[str, str]) -> None:
        user_id = row.text("id")
        found = read_user(row, await self._auth_of(user_id), self._run.now)
        email = found.user.email
        if email in taken:
            raise invalid(f"the user {taken[email]} has the same e-mail address in another form")
        taken[email] = user_id
        here = await self._stores.users.find(user_id) or await self._stores.users.find_by_email(email)
        if here is None:
            if found.password_hash is not None and is_bcrypt(found.password_hash):
                _require_bcrypt()
            self._run.new_users.add(user_id)
        else:
            self._run.ledger.present(ImportKind.USER)
            if here.id != user_id:
                change = f"the account {here.id} of its e-mail address is here, and is used as it is"
                self._run.ledger.remark(ImportKind.USER, user_id, email, [change])
        self._run.known.users[user_id] = user_id if here is None else here.id
        if not self._run.fallback_owner and (here or found.user).role is Role.ADMIN:
            self._run.fallback_owner = self._run.known.users[user_id]

    async def _auth_of(self, user_id: str) -> ForeignRow | None:
        async for values in self._run.source.rows("auth", where={"id": user_id}):
            return ForeignRow(values)
        return None

    async def _import_group(self, row: ForeignRow, member_ids: Sequence[str]) -> None:
        found = read_group(row, self._run.now)
        group = replace(found.group, user_id=self._run.known.users.get(row.text("user_id")))
        changes = list(found.changes)
        here = await self._stores.groups.find(group.id)
        if here is None:
            here = await self._stores.groups.find_by_name(group.name)
            if here is not None:
                changes.append(f"the group {here.id} of this name is here, and gets its new accounts")
        self._run.known.groups[group.id] = group.id if here is None else here.id
        members = dict.fromkeys([*member_ids, *found.member_ids])
        for user_id in members:
            self._groups_of.setdefault(user_id, []).append(self._run.known.groups[group.id])
        self._run.ledger.remark(ImportKind.GROUP, group.id, group.name, changes)
        if here is not None:
            self._run.ledger.present(ImportKind.GROUP)
            return
        known = self._run.known.users
        present = [known[each] for each in members if each in known and each not in self._run.new_users]
        if not self._run.dry_run:
            async with self._stores.transactor.transaction():
                await self._stores.groups.add(group)
                await self._join(group.id, present)
        self._run.ledger.imported(ImportKind.GROUP)

    async def _join(self, group_id: str, user_ids: Sequence[str]) -> None:
        if user_ids:
            source = MembershipSource.MANUAL
            await self._stores.groups.add_members(group_id, user_ids, source=source, at=self._run.now)

    async def _import_user(self, found: ForeignUser, keys: Sequence[ApiKey]) -> None:
        user, changes = found.user, list(found.changes)
        if user.username and await self._stores.users.has_username(user.username):
            changes.append(f"the user name {user.username} is taken here")
            user = replace(user, username=None)
        with self._run.record(ImportKind.USER, user.id, user.email):
            usable, valves = await self._usable_keys(keys, user), self._usable_valves(found)
            if not self._run.dry_run:
                user = await self._store(user, found.password_hash, usable, valves, changes)
            self._run.ledger.imported(ImportKind.USER)
            for _ in usable:
                self._run.ledger.imported(ImportKind.KEY)
            for _ in valves:
                self._run.ledger.imported(ImportKind.VALVES)
            self._run.ledger.remark(ImportKind.USER, user.id, user.email, changes)

    async def _store(
        self,
        user: User,
        password_hash: str | None,
        keys: Sequence[ApiKey],
        valves: Sequence[ForeignValves],
        changes: list[str],
    ) -> User:
        """Store an account with what belongs to it; identities that another account has are left out."""
        try:
            await self._store_as_it_is(user, password_hash, keys, valves)
        except GatewayError as error:
            if error.kind is not ErrorKind.CONFLICT or not (user.oauth or user.scim):
                raise
            changes.append(f"{error.message}; its identities at providers are left out")
            user = replace(user, oauth=None, scim=None)
            await self._store_as_it_is(user, password_hash, keys, valves)
        return user

    async def _store_as_it_is(
        self,
        user: User,
        password_hash: str | None,
        keys: Sequence[ApiKey],
        valves: Sequence[ForeignValves],
    ) -> None:
        async with self._stores.transactor.transaction():
            await self._stores.users.add(user, password_hash)
            for group_id in dict.fromkeys(self._groups_of.get(user.id, ())):
                await self._join(group_id, [user.id])
            for key in keys:
                await self._stores.keys.add(key)
            for each in valves:
                await self._stores.valves.put(user.id, each.family, check_id(each.plugin_id), each.values)

    async def _usable_keys(self, keys: Sequence[ApiKey], user: User) -> Sequence[ApiKey]:
        """Return the keys that no account has, with different names."""
        usable: list[ApiKey] = []
        for key in keys:
            if await self._stores.keys.find_by_digest(key.digest) is not None:
                self._run.ledger.leave_out(ImportKind.KEY, key.prefix, user.email, TAKEN)
            else:
                name = key.name if not usable else f"{key.name} {len(usable) + 1}"
                usable.append(replace(key, name=name))
        return usable

    def _usable_valves(self, found: ForeignUser) -> Sequence[ForeignValves]:
        usable = []
        for each in found.valves:
            with self._run.record(ImportKind.VALVES, each.plugin_id, found.user.email):
                check_id(each.plugin_id)
                if not isinstance(each.values, dict):
                    raise invalid(ENCRYPTED)
                if each.values:
                    usable.append(each)
        return usable

    async def _note_present(self, found: ForeignUser, keys: Sequence[ApiKey], user_id: str) -> None:
        """Count the keys and valves of an account that is here."""
        email = found.user.email
        for key in keys:
            held = await self._stores.keys.find_by_digest(key.digest)
            if held is not None and held.user_id == user_id:
                self._run.ledger.present(ImportKind.KEY)
            else:
                self._run.ledger.leave_out(ImportKind.KEY, key.prefix, email, NOT_NEW)
        for each in self._usable_valves(found):
            if await self._stores.valves.find(user_id, each.family, check_id(each.plugin_id)) is not None:
                self._run.ledger.present(ImportKind.VALVES)
            else:
                self._run.ledger.leave_out(ImportKind.VALVES, each.plugin_id, email, NOT_NEW)


def _require_bcrypt() -> None:
    if not is_installed(PackageExtra.OPEN_WEBUI):
        raise missing_extra_error("cannot check passwords of Open WebUI", PackageExtra.OPEN_WEBUI)
