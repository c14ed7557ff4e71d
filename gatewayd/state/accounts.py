"""Tables of accounts and of groups with their members."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.groups import MAX_MEMBERS_AT_ONCE, Groups
from gatewayd.accounts.records import GroupChange, MembershipSource, NewGroup, NewUser, Role, User, UserChange
from gatewayd.accounts.texts import email_key, normalise_email
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid
from gatewayd.state.interfaces import StateTable
from gatewayd.state.planner import named_once
from gatewayd.state.records import (
    Fields,
    ObjectChange,
    StateAction,
    StateObject,
    StateSnapshot,
    located,
    refused,
)
from gatewayd.state.scope import StateScope, group_key
from gatewayd.time_slices import LoopPacer, iterate_paced
from gatewayd.transactions import Transactor

_USER_FIELDS: Final = {name: name for name in ("name", "username", "role", "password")}
_GROUP_FIELDS: Final = {name: name for name in ("description", "permissions")}
SOURCES_PER_PAGE: Final = 1000


class UserTable(StateTable):
    """Accounts by e-mail address. A password is that of a new account; present ones stay."""

    table = "users"
    secrets = frozenset({"password"})

    def __init__(self, users: Users) -> None:
        self._users = users

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all accounts."""
        return dict(
            await iterate_paced((user.email, StateObject(_user_fields(user))) for user in scope.accounts)
        )

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the accounts by normal address; the password of a present account is left out."""
        result: dict[str, Fields] = {}
        pace = LoopPacer()
        for email, (name, fields) in (await named_once(self, wanted, self._address(held))).items():
            await pace.turn()
            with located(self.path(name), _USER_FIELDS):
                result[email] = self._checked(email, fields, is_new=email not in held)
        await self._check_usernames(result, held)
        return result

    async def keep(self, snapshot: StateSnapshot, scope: StateScope) -> tuple[Sequence[str], Sequence[str]]:
        """Return the accounts to delete without the last active administrator."""
        held, wanted, leaving = snapshot.held, snapshot.wanted, set(snapshot.leaving)
        before = [name for name, each in held.items() if _is_admin(each.fields)]
        names = dict.fromkeys((*before, *wanted))
        if not before or any(_is_admin(_after(each, wanted, held)) for each in names if each not in leaving):
            return snapshot.leaving, ()
        primary = await self._users.find_primary()
        choices = sorted(leaving.intersection(before))
        if not choices:
            demoted = min(name for name in before if name in wanted)
            field = "active" if wanted[demoted].get("active") is False else "role"
            raise refused(self.path(demoted, field), "no active administrator would remain")
        stays = primary.email if primary is not None and primary.email in choices else choices[0]
        note = f"{self.path(stays)} stays: it is the last active administrator"
        return [name for name in snapshot.leaving if name != stays], [note]

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Add new accounts to the names, and remove those that leave."""
        for name in snapshot.wanted.keys() - snapshot.held.keys():
            scope.add_user(name)
        for name in snapshot.leaving:
            del scope.users[name]

    def rank(self, change: ObjectChange) -> int:
        """Return 0 for new rights, so that an administrator is there before another one is demoted."""
        values = change.values
        return 0 if values.get("role") == Role.ADMIN.value or values.get("active") is True else 1

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Create, change or remove an account."""
        values = {**change.values}
        if change.action is StateAction.CREATE:
            user = await self._users.create(_new_user(change.name, values))
            scope.add_user(user.email, user.id)
            if user.role is Role.ADMIN:
                scope.primary_id = scope.primary_id or user.id
            return
        user = await self._users.resolve(change.name)
        if change.action is StateAction.DELETE:
            await self._users.remove(user.id, None)
            return
        if "role" in values:
            values["role"] = Role(values["role"])
        if "username" in values:
            values["username"] = values["username"] or ""
        await self._users.change(user.id, UserChange(**values), None)

    def _address(self, held: Mapping[str, StateObject]) -> Any:
        def normal(name: str) -> str:
            key = email_key(name)
            if key in held:
                return key
            with located(self.path(name)):
                return normalise_email(name)

        return normal

    def _checked(self, email: str, fields: Fields, *, is_new: bool) -> Fields:
        given = {name: value for name, value in fields.items() if is_new or name != "password"}
        user = _new_user(email, given)
        normal = _user_fields(self._users.check_new(user))
        return {name: given[name] if name == "password" else normal[name] for name in given}

    async def _check_usernames(self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject]) -> None:
        owners: dict[str, str] = {}
        pace = LoopPacer()
        for name in dict.fromkeys((*held, *wanted)):
            await pace.turn()
            username = _after(name, wanted, held).get("username")
            if username is None:
                continue
            other = owners.setdefault(username, name)
            if other != name:
                # One of the two is in the document; present accounts have different ones.
                given = name if "username" in wanted.get(name, {}) else other
                taken = other if given == name else name
                raise refused(self.path(given, "username"), f"{taken!r} has it")


class GroupTable(StateTable):
    """Groups by name, in any case, with the members that administrators add."""

    table = "groups"

    def __init__(self, groups: Groups, transactor: Transactor) -> None:
        self._groups = groups
        self._transactor = transactor

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all groups; members that a provider or the sign-up added are not listed."""
        found = {}
        for group in await self._groups.list():
            members = await self._members(group.id, scope)
            fields = {"description": group.description, "permissions": _tree(group.permissions)}
            found[group.name] = StateObject({**fields, "members": members})
        return found

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the groups by name, in the spelling of the present ones."""
        result: dict[str, Fields] = {}
        for name, fields in (await named_once(self, wanted, group_key)).values():
            with located(self.path(name), _GROUP_FIELDS):
                checked = self._groups.check_new(_new_group(name, fields))
            normal: dict[str, Any] = {
                "description": checked.description,
                "permissions": _tree(checked.permissions),
            }
            if "members" in fields:
                normal["members"] = await self._checked_members(name, fields["members"], scope)
            known = scope.groups.get(group_key(name))
            result[checked.name if known is None else known[0]] = {each: normal[each] for each in fields}
        return result

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Add new groups to the names, and remove those that leave."""
        for name in snapshot.wanted.keys() - snapshot.held.keys():
            scope.add_group(name)
        for name in snapshot.leaving:
            del scope.groups[group_key(name)]

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Create, change or remove a group, with its members in one transaction."""
        values = change.values
        if change.action is StateAction.DELETE:
            group_ids = {name: group_id for group_id, name in scope.group_names.items()}
            await self._groups.remove(group_ids[change.name])
            return
        async with self._transactor.transaction():
            if change.action is StateAction.CREATE:
                group = await self._groups.create(_new_group(change.name, values))
                group_id = group.id
            else:
                group_id = scope.group_id(change.name)
                kept = {name: values[name] for name in ("description", "permissions") if name in values}
                await self._groups.change(group_id, GroupChange(**kept))
            if values.get("members") is not None:
                members = [scope.users[email] for email in values["members"]]
                await self._groups.set_members(group_id, members, MembershipSource.MANUAL)
        scope.add_group(change.name, group_id)

    async def _members(self, group_id: str, scope: StateScope) -> list[str]:
        found: list[str] = []
        member_ids = await self._groups.list_member_ids(group_id)
        for start in range(0, len(member_ids), SOURCES_PER_PAGE):
            page = member_ids[start : start + SOURCES_PER_PAGE]
            sources = await self._groups.list_sources(group_id, page)
            found += [
                scope.emails[each]
                for each in page
                if each in scope.emails and MembershipSource.MANUAL in sources.get(each, ())
            ]
        return sorted(found)

    async def _checked_members(self, name: str, refs: Sequence[str], scope: StateScope) -> list[str]:
        found = set()
        pace = LoopPacer()
        with located(self.path(name, "members")):
            if len(refs) > MAX_MEMBERS_AT_ONCE:
                raise invalid(f"cannot accept more than {MAX_MEMBERS_AT_ONCE} members")
            for ref in refs:
                await pace.turn()
                found.add(scope.user(ref))
        return sorted(found)


def _user_fields(user: User) -> dict[str, Any]:
    return {"name": user.name, "role": user.role.value, "active": user.active, "username": user.username}


def _new_user(email: str, values: Fields) -> NewUser:
    return NewUser(
        email=email,
        name=values.get("name", email),
        role=Role(values.get("role", Role.USER)),
        password=values.get("password"),
        username=values.get("username"),
        active=values.get("active", True),
    )


def _new_group(name: str, values: Fields) -> NewGroup:
    return NewGroup(name, values.get("description", ""), permissions=values.get("permissions", {}))


def _after(name: str, wanted: Mapping[str, Fields], held: Mapping[str, StateObject]) -> Fields:
    """Return the fields of an account after the plan."""
    before: Fields = held[name].fields if name in held else {}
    return {**before, **wanted[name]} if name in wanted else before


def _is_admin(fields: Fields) -> bool:
    return fields.get("role") == Role.ADMIN.value and fields.get("active", True) is True


def _tree(permissions: Mapping[str, Mapping[str, bool]]) -> dict[str, dict[str, bool]]:
    """Return a tree in the order of names, without empty sections."""
    return {
        section: dict(sorted(permissions[section].items()))
        for section in sorted(permissions)
        if permissions[section]
    }
