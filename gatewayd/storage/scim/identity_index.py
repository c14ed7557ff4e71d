"""Lookup rows of users and groups: e-mail addresses, external ids and OAuth subjects."""

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
"""The rows of each lookup table for one user or group, by column, without the owner's column."""

NO_LOOKUPS: Final[Lookups] = {}


def keys_of(user: User) -> dict[str, str]:
    """Return the folded keys of a user's displayed names, by column."""
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
    """Return the lookup rows of a user."""
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
    """Return the lookup rows of a group."""
    return {GroupExternalIdRow: _named(group.scim, "external_id", "external_id")}


async def update_lookups(owner: Mapping[str, str], before: Lookups, after: Lookups) -> None:
    """Replace the lookup rows of an owner (`{"user_id": id}`) in the tables that changed.

    Runs two statements per changed table, one if it had no rows.
    """
    for table, records in after.items():
        former = before.get(table, ())
        if list(former) == list(records):
            continue
        if former:
            await table.filter(**owner).delete()
        await insert_rows(table, [{**owner, **record} for record in records])


def _named(providers: Mapping[str, Any] | None, member: str, column: str) -> list[dict[str, str]]:
    """Return the identifier `member` of each provider's entry, as rows; empty and non-text values are
    skipped."""
    names = {
        provider: object_or_empty(entry).get(member) for provider, entry in object_or_empty(providers).items()
    }
    return [
        {"provider": provider, column: name}
        for provider, name in names.items()
        if isinstance(name, str) and name
    ]
