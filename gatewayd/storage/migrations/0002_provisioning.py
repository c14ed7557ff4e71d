"""What identity providers say about users and groups, and what both are looked up by."""

import json
import logging
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops
from tortoise.migrations.constraints import UniqueConstraint

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn
from gatewayd.storage.engine.transactions import placeholder
from gatewayd.text import casefold_nfc

BATCH: Final = 500
MICROSECONDS: Final = 1_000_000
# The lengths of the columns when this migration was written.
PROVIDER_LENGTH: Final = 128
FOREIGN_ID_LENGTH: Final = 512

SHOWN: Final = (
    "user_name_key",
    "display_name_key",
    "formatted_name_key",
    "given_name_key",
    "family_name_key",
    "modified_us",
)
INDEXES: Final = (("user_external_ids", "external_id"), ("user_subjects", "subject"))
# Where the JSON columns hold what the index rows do.
SOURCES: Final = {"external_id": ("scim", "external_id"), "subject": ("oauth", "sub")}

User = Mapping[str, Any]
"""Some columns of a user."""

Row = tuple[str, str, str]
"""User, provider and what it calls them."""

log = logging.getLogger(__name__)


async def fill_in(_: Any, editor: Any) -> None:
    """Write the keys and the index rows of everything there is.

    What only one can have, the oldest keeps; that it was taken from another is logged.
    """
    client = editor.client
    await client.execute_query("UPDATE groups SET modified_us = updated_at * 1000000")
    taken: set[tuple[str, ...]] = set()
    async for users in _pages(client):
        await client.execute_many(_update(client), [_shown(user, taken) for user in users])
        addresses = [(user["id"], casefold_nfc(user["email"]), "work", True) for user in users]
        await _insert(client, "user_emails", ("user_id", "value_key", "type_key", "is_primary"), addresses)
        for table, column in INDEXES:
            kept, lost = _divided(users, column, taken)
            await _insert(client, table, ("user_id", "provider", column), kept)
            await _take_away(client, users, column, lost)


async def _pages(client: Any) -> AsyncIterator[Sequence[User]]:
    """Yield all users in the order of creation, a few in memory at a time."""
    at, user_id = -(2**63), ""
    one, two = placeholder(client, 1), placeholder(client, 2)
    query = (
        "SELECT id, email, name, oauth, scim, updated_at, created_at FROM users "  # noqa: S608 - no values
        f"WHERE created_at > {one} OR (created_at = {one} AND id > {two}) "
        f"ORDER BY created_at, id LIMIT {BATCH}"
    )
    while rows := await client.execute_query_dict(query, [at, user_id]):
        yield rows
        at, user_id = rows[-1]["created_at"], rows[-1]["id"]


def _update(client: Any) -> str:
    columns = [f"{name} = {placeholder(client, place)}" for place, name in enumerate(SHOWN, start=1)]
    return f"UPDATE users SET {', '.join(columns)} WHERE id = {placeholder(client, len(SHOWN) + 1)}"  # noqa: S608


def _shown(user: User, taken: set[tuple[str, ...]]) -> tuple[str | int, ...]:
    """Return what a user shows who was made by hand, the address and the name, and the id."""
    address, name = casefold_nfc(user["email"]), casefold_nfc(user["name"])
    if ("user_name", address) in taken:
        log.warning("a user has the %s of an older one", "user_name", extra={"user_id": user["id"]})
        address = user["id"]
    taken.add(("user_name", address))
    given, _, family = user["name"].partition(" ")
    modified_us = user["updated_at"] * MICROSECONDS
    return address, name, name, casefold_nfc(given), casefold_nfc(family.strip()), modified_us, user["id"]


def _divided(users: Sequence[User], column: str, taken: set[tuple[str, ...]]) -> tuple[list[Row], list[Row]]:
    """Return the index rows that nobody has yet, and those that an older user has."""
    kept: list[Row] = []
    lost: list[Row] = []
    for row in (row for user in users for row in _foreign_ids(user, column)):
        place = (column, *row[1:])
        (lost if place in taken else kept).append(row)
        taken.add(place)
    return kept, lost


def _foreign_ids(user: User, column: str) -> Iterator[Row]:
    """Yield the index rows of a user; shapes that a row cannot hold are left out."""
    source, member = SOURCES[column]
    stored = None if user[source] is None else json.loads(user[source])
    for provider, entry in stored.items() if isinstance(stored, dict) else ():
        value = entry.get(member) if isinstance(entry, dict) else None
        if not isinstance(value, str) or not 0 < len(value) <= FOREIGN_ID_LENGTH:
            continue
        if len(provider) <= PROVIDER_LENGTH:
            yield user["id"], provider, value


async def _take_away(client: Any, users: Sequence[User], column: str, lost: Sequence[Row]) -> None:
    """Take from users what older ones have, so that nobody shows it whom it does not find."""
    for user_id, provider, value in lost:
        told = {"user_id": user_id, "provider": provider, "value": value}
        log.warning("a user has the %s of an older one", column, extra=told)
    source, _ = SOURCES[column]
    query = f"UPDATE users SET {source} = {placeholder(client, 1)} WHERE id = {placeholder(client, 2)}"  # noqa: S608
    for user in users:
        providers = {provider for user_id, provider, _ in lost if user_id == user["id"]}
        if providers:
            await client.execute_query(query, [_without(user, column, providers), user["id"]])


def _without(user: User, column: str, providers: Collection[str]) -> str | None:
    """Return the JSON of a user without what some providers call them."""
    source, member = SOURCES[column]
    stored = json.loads(user[source])
    for provider in providers:
        del stored[provider][member]
    kept = {provider: entry for provider, entry in stored.items() if entry or provider not in providers}
    return json.dumps(kept) if kept else None


async def _insert(client: Any, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join(placeholder(client, place) for place in range(1, len(columns) + 1))
        query = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - no values
        await client.execute_many(query, rows)


def _foreign_key(row: str, name: str, related_name: str, *, db_index: bool = False) -> Any:
    return fields.ForeignKeyField(
        f"gatewayd.{row}",
        source_field=f"{name}_id",
        db_index=db_index,
        db_constraint=True,
        to_field="id",
        related_name=related_name,
        on_delete=OnDelete.CASCADE,
    )


def _id() -> tuple[str, Any]:
    return "id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)


class Migration(migrations.Migration):
    """Add columns and tables, and fill them in."""

    dependencies = [("gatewayd", "0001_initial")]

    operations = [
        ops.AddField("UserRow", "user_name", NameColumn(null=True, max_length=320)),
        ops.AddField("UserRow", "display_name", NameColumn(null=True, max_length=255)),
        ops.AddField("UserRow", "formatted_name", NameColumn(null=True, max_length=255)),
        ops.AddField("UserRow", "given_name", NameColumn(null=True, max_length=255)),
        ops.AddField("UserRow", "family_name", NameColumn(null=True, max_length=255)),
        ops.AddField("UserRow", "emails", JsonColumn(null=True, unique=False)),
        ops.AddField("UserRow", "user_name_key", NameColumn(db_default="", max_length=960)),
        ops.AddField("UserRow", "display_name_key", NameColumn(db_default="", max_length=765)),
        ops.AddField("UserRow", "formatted_name_key", NameColumn(db_default="", max_length=765)),
        ops.AddField("UserRow", "given_name_key", NameColumn(db_default="", max_length=765)),
        ops.AddField("UserRow", "family_name_key", NameColumn(db_default="", max_length=765)),
        ops.AddField("UserRow", "modified_us", IntegerColumn(db_default=0)),
        ops.AlterModelOptions(
            "UserRow",
            {
                "pk_attr": "id",
                "table_description": (
                    "One account. Keys are those of what is shown, empty when nothing is shown."
                ),
            },
        ),
        ops.AddField("GroupRow", "scim", JsonColumn(null=True, unique=False)),
        ops.AddField("GroupRow", "modified_us", IntegerColumn(db_default=0)),
        ops.CreateModel(
            name="UserEmailRow",
            fields=[
                _id(),
                ("user", _foreign_key("UserRow", "user", "addresses", db_index=True)),
                ("value_key", NameColumn(db_index=True, max_length=960)),
                ("type_key", NameColumn(max_length=765)),
                ("is_primary", fields.BooleanField()),
            ],
            options={
                "table": "user_emails",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "One shown address of a user, to look it up by.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UserExternalIdRow",
            fields=[
                _id(),
                ("user", _foreign_key("UserRow", "user", "external_ids")),
                ("provider", NameColumn(max_length=128)),
                ("external_id", NameColumn(max_length=512)),
            ],
            options={
                "table": "user_external_ids",
                "app": "gatewayd",
                "unique_together": (("provider", "external_id"), ("user", "provider")),
                "pk_attr": "id",
                "table_description": "What a provider calls a user.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UserSubjectRow",
            fields=[
                _id(),
                ("user", _foreign_key("UserRow", "user", "subjects")),
                ("provider", NameColumn(max_length=128)),
                ("subject", NameColumn(max_length=512)),
            ],
            options={
                "table": "user_subjects",
                "app": "gatewayd",
                "unique_together": (("provider", "subject"), ("user", "provider")),
                "pk_attr": "id",
                "table_description": "The OAuth subject that a user is to a provider.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="GroupExternalIdRow",
            fields=[
                _id(),
                ("group", _foreign_key("GroupRow", "group", "external_ids")),
                ("provider", NameColumn(max_length=128)),
                ("external_id", NameColumn(max_length=512)),
            ],
            options={
                "table": "group_external_ids",
                "app": "gatewayd",
                "unique_together": (("provider", "external_id"), ("group", "provider")),
                "pk_attr": "id",
                "table_description": "What a provider calls a group.",
            },
            bases=["Model"],
        ),
        # SQLite cannot take a constraint away from a table, so the table is made anew.
        ops.RunSQL("CREATE TABLE kept_members AS SELECT * FROM group_members"),
        ops.DeleteModel("MembershipRow"),
        ops.CreateModel(
            name="MembershipRow",
            fields=[
                _id(),
                ("group", _foreign_key("GroupRow", "group", "memberships")),
                ("user", _foreign_key("UserRow", "user", "memberships")),
                ("source", NameColumn(max_length=32)),
                ("created_at", IntegerColumn()),
                ("display", NameColumn(null=True, max_length=255)),
            ],
            options={
                "table": "group_members",
                "app": "gatewayd",
                "unique_together": (("group", "user", "source"),),
                "indexes": [Index(fields=["user_id", "group_id"])],
                "pk_attr": "id",
                "table_description": (
                    "One user in one group, once for each source that put it there, "
                    "which may have named the user."
                ),
            },
            bases=["Model"],
        ),
        ops.RunSQL(
            "INSERT INTO group_members (group_id, user_id, source, created_at) "
            "SELECT group_id, user_id, source, created_at FROM kept_members ORDER BY id"
        ),
        ops.RunSQL("DROP TABLE kept_members"),
        ops.RunPython(fill_in),
        ops.AddConstraint("UserRow", UniqueConstraint(fields=("user_name_key",))),
        ops.AddIndex("UserRow", Index(fields=["id", "display_name_key"])),
        ops.AddIndex("UserRow", Index(fields=["display_name_key", "id"])),
    ]
