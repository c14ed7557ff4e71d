"""Rows that users and groups are looked up by, kept beside theirs: addresses, external ids, subjects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tortoise.models import Model

from gatewayd.accounts.display_identity import shown
from gatewayd.accounts.records import Group, User
from gatewayd.accounts.texts import as_object
from gatewayd.storage.engine.upserts import insert
from gatewayd.storage.tables.accounts import (
    GroupExternalIdRow,
    UserEmailRow,
    UserExternalIdRow,
    UserSubjectRow,
)
from gatewayd.text import folded

Lookups = Mapping[type[Model], Sequence[Mapping[str, Any]]]
"""What each table should hold of one user or group, by column, without whose it is."""

NONE: Final[Lookups] = {}


def keys_of(user: User) -> dict[str, str]:
    """Return the keys of what is shown of a user, by column."""
    person = shown(user)
    texts = {
        "user_name_key": person.user_name,
        "display_name_key": person.display_name,
        "formatted_name_key": person.formatted_name,
        "given_name_key": person.given_name,
        "family_name_key": person.family_name,
    }
    return {column: folded(text or "") for column, text in texts.items()}


def of_user(user: User) -> Lookups:
    """Return the rows that a user should have."""
    return {
        UserEmailRow: [
            {"value_key": folded(each.value), "type_key": folded(each.type), "is_primary": each.primary}
            for each in shown(user).emails
        ],
        UserExternalIdRow: _named(user.scim, "external_id", "external_id"),
        UserSubjectRow: _named(user.oauth, "sub", "subject"),
    }


def of_group(group: Group) -> Lookups:
    """Return the rows that a group should have."""
    return {GroupExternalIdRow: _named(group.scim, "external_id", "external_id")}


async def keep(owner: Mapping[str, str], before: Lookups, after: Lookups) -> None:
    """Make the rows of an owner (`{"user_id": id}`) what they should be, where that has changed.

    Two statements for each table that changed, one when it held nothing.
    """
    for table, records in after.items():
        former = before.get(table, ())
        if list(former) == list(records):
            continue
        if former:
            await table.filter(**owner).delete()
        await insert(table, [{**owner, **record} for record in records])


def _named(providers: Mapping[str, Any] | None, member: str, column: str) -> list[dict[str, str]]:
    """Return what each provider calls somebody; other shapes, and what is empty, are no names."""
    names = {provider: as_object(entry).get(member) for provider, entry in as_object(providers).items()}
    return [
        {"provider": provider, column: name}
        for provider, name in names.items()
        if isinstance(name, str) and name
    ]
