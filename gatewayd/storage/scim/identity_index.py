"""Rows that users and groups are looked up by, kept beside theirs: addresses, external ids, subjects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tortoise.models import Model

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.records import Group, User
from gatewayd.accounts.texts import object_or_empty
from gatewayd.storage.engine.upserts import insert_rows
from gatewayd.storage.tables.accounts import (
    GroupExternalIdRow,
    UserEmailRow,
    UserExternalIdRow,
    UserSubjectRow,
)
from gatewayd.text import casefold_nfc

Lookups = Mapping[type[Model], Sequence[Mapping[str, Any]]]
"""What each table should hold of one user or group, by column, without whose it is."""

NO_LOOKUPS: Final[Lookups] = {}


def keys_of(user: User) -> dict[str, str]:
    """Return the keys of what is shown of a user, by column."""
    person = display_identity(user)
    texts = {
        "user_name_key": person.user_name,
        "display_name_key": person.display_name,
        "formatted_name_key": person.formatted_name,
        "given_name_key": person.given_name,
        "family_name_key": person.family_name,
    }
    return {column: casefold_nfc(text or "") for column, text in texts.items()}


def of_user(user: User) -> Lookups:
    """Return the rows that a user should have."""
    return {
        UserEmailRow: [
            {
                "value_key": casefold_nfc(each.value),
                "type_key": casefold_nfc(each.type),
                "is_primary": each.primary,
            }
            for each in display_identity(user).emails
        ],
        UserExternalIdRow: _named(user.scim, "external_id", "external_id"),
        UserSubjectRow: _named(user.oauth, "sub", "subject"),
    }


def of_group(group: Group) -> Lookups:
    """Return the rows that a group should have."""
    return {GroupExternalIdRow: _named(group.scim, "external_id", "external_id")}


async def update_lookups(owner: Mapping[str, str], before: Lookups, after: Lookups) -> None:
    """Make the rows of an owner (`{"user_id": id}`) what they should be, where that has changed.

    Two statements for each table that changed, one when it held nothing.
    """
    for table, records in after.items():
        former = before.get(table, ())
        if list(former) == list(records):
            continue
        if former:
            await table.filter(**owner).delete()
        await insert_rows(table, [{**owner, **record} for record in records])


def _named(providers: Mapping[str, Any] | None, member: str, column: str) -> list[dict[str, str]]:
    """Return what each provider calls somebody; other shapes, and what is empty, are no names."""
    names = {
        provider: object_or_empty(entry).get(member) for provider, entry in object_or_empty(providers).items()
    }
    return [
        {"provider": provider, column: name}
        for provider, name in names.items()
        if isinstance(name, str) and name
    ]
