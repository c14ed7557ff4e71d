"""Folders of chats, and an index of the messages that users marked as favourites."""

from typing import Any, Final

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn

INDEX: Final = "CREATE INDEX idx_chat_messages_favorite ON chat_messages (chat_id, timestamp) WHERE "
# Damaged JSON may not stop a write, so that SQLite does not parse it here.
SQLITE: Final = INDEX + "instr(attributes, '\"favorite\":true') > 0"
POSTGRES: Final = INDEX + "attributes @> '{\"favorite\": true}'::jsonb"


async def index_favourites(_: Any, editor: Any) -> None:
    """Make the index, which the ORM cannot describe."""
    client = editor.client
    is_postgres = client.capabilities.dialect == "postgres"
    await client.execute_script(POSTGRES if is_postgres else SQLITE)


class Migration(migrations.Migration):
    """Make the table and the index."""

    dependencies = [("gatewayd", "0011_identities")]

    operations = [
        ops.CreateModel(
            name="FolderRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="chat_folders",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("parent_id", NameColumn(null=True, max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(max_length=765)),
                ("is_expanded", fields.BooleanField()),
                ("meta", JsonColumn(unique=False)),
                ("data", JsonColumn(unique=False)),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "chat_folders",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "name_key"])],
                "pk_attr": "id",
                "table_description": "One folder of chats, whose name_key finds it by name.",
            },
            bases=["Model"],
        ),
        ops.RunPython(index_favourites),
    ]
