"""Names and ids of everything that a document refers to, as one plan sees them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import Actor, User
from gatewayd.accounts.texts import email_key
from gatewayd.accounts.users import Users
from gatewayd.catalog.access_grants import READ, WRITE
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.errors import invalid, shorten
from gatewayd.text import casefold_nfc

GROUP: Final = "group:"
"""Prefix of groups among the names of an access list."""

MAX_GRANTS: Final = 1000
"""Maximum number of names in one access list of the document."""

PLANNED: Final = ""
"""The id of an object that the plan creates."""


@dataclass(slots=True)
class StateScope:
    """What one run knows: the operator, and names with ids. A name of an object to create has the id "".

    `emails` and `group_names` have the names of all present objects by id, those that are deleted included.
    """

    actor: Actor
    author: str
    accounts: Sequence[User] = ()
    users: dict[str, str] = field(default_factory=dict)
    emails: dict[str, str] = field(default_factory=dict)
    groups: dict[str, tuple[str, str]] = field(default_factory=dict)
    group_names: dict[str, str] = field(default_factory=dict)
    collections: dict[str, str] = field(default_factory=dict)
    plugins: dict[str, set[str]] = field(default_factory=dict)
    servers: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    secrets: set[tuple[str, str, str]] = field(default_factory=set)
    """Table, object and field of further values that no plan shows: secret valves of new sources."""
    leaving_collections: dict[str, str] = field(default_factory=dict)
    primary_id: str = ""
    """The id of the primary administrator, who owns new objects without an owner; "" without one."""

    def user(self, ref: str) -> str:
        """Return the e-mail address of an account in its stored form; invalid_request without the account."""
        address = email_key(ref)
        if address not in self.users:
            raise invalid(f"cannot find user {shorten(ref)!r}")
        return address

    def group(self, ref: str) -> str:
        """Return the name of a group in its stored spelling; invalid_request without the group."""
        found = self.groups.get(group_key(ref))
        if found is None:
            raise invalid(f"cannot find group {shorten(ref)!r}")
        return found[0]

    def group_id(self, ref: str) -> str:
        """Return the id of a group; invalid_request without it."""
        return self.groups[group_key(self.group(ref))][1]

    def add_user(self, email: str, user_id: str = PLANNED) -> None:
        """Add a new account."""
        self.users[email] = user_id

    def add_group(self, name: str, group_id: str = PLANNED) -> None:
        """Add a new group."""
        self.groups[group_key(name)] = (name, group_id)

    def principals(self, refs: Sequence[str]) -> list[str]:
        """Return the names of an access list in their stored form, sorted; invalid_request names an unknown
        one."""
        if len(refs) > MAX_GRANTS:
            raise invalid(f"cannot accept more than {MAX_GRANTS} names")
        return sorted({self._principal(ref) for ref in refs})

    def sides(self, grants: Iterable[Grant]) -> dict[str, list[str]]:
        """Return an access list as `readers` and `writers`; grants of removed accounts and groups have no
        name and are left out."""
        named = [(grant.permission, self._name(grant)) for grant in grants]
        return {
            side: sorted({name for permission, name in named if permission == right and name})
            for side, right in (("readers", READ), ("writers", WRITE))
        }

    def grants(self, fields: Mapping[str, Any], held: Sequence[Grant] = ()) -> tuple[Grant, ...]:
        """Return an access list with its readers, its writers or both replaced.

        Grants of removed accounts and groups stay: the document cannot name them.
        """
        result = [grant for grant in held if not self._name(grant)]
        for side, permission in (("readers", READ), ("writers", WRITE)):
            given = fields.get(side)
            if given is None:
                result += [each for each in held if each.permission == permission and self._name(each)]
            else:
                result += [Grant(*self._id(name), permission) for name in given]
        return tuple(dict.fromkeys(result))

    def _principal(self, ref: str) -> str:
        if ref == EVERYBODY:
            return EVERYBODY
        return GROUP + self.group(ref.removeprefix(GROUP)) if ref.startswith(GROUP) else self.user(ref)

    def _name(self, grant: Grant) -> str:
        if grant.principal_type == "group":
            name = self.group_names.get(grant.principal_id)
            return "" if name is None else GROUP + name
        return EVERYBODY if grant.principal_id == EVERYBODY else self.emails.get(grant.principal_id, "")

    def _id(self, name: str) -> tuple[str, str]:
        if name == EVERYBODY:
            return "user", EVERYBODY
        if name.startswith(GROUP):
            return "group", self.group_id(name.removeprefix(GROUP))
        return "user", self.users[self.user(name)]


async def read_scope(users: Users, groups: Groups, actor: Actor, author: str) -> StateScope:
    """Return the names of all accounts and groups. `author` is the actor in the history of stored values."""
    scope = StateScope(actor, author)
    primary = await users.find_primary()
    scope.primary_id = "" if primary is None else primary.id
    accounts: list[User] = []
    async for page in users.pages(await users.list_ids()):
        accounts += page
    scope.accounts = accounts
    for user in accounts:
        scope.add_user(user.email, user.id)
        scope.emails[user.id] = user.email
    for group in await groups.list():
        scope.add_group(group.name, group.id)
        scope.group_names[group.id] = group.name
    return scope


def group_key(name: str) -> str:
    """Return the form of a group's name in which no two groups are equal."""
    return casefold_nfc(name.strip())


def check_reference(known: Iterable[str], ref: str, what: str) -> str:
    """Return a reference; invalid_request if it is not among the known names."""
    if ref not in known:
        raise invalid(f"cannot find {what} {shorten(ref)!r}")
    return ref
