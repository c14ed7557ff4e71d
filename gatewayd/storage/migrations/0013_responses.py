"""Responses that callers may read, delete and continue."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn


class Migration(migrations.Migration):
    """Make the table of the stored responses."""

    dependencies = [("gatewayd", "0012_folders")]

    operations = [
        ops.CreateModel(
            name="StoredResponseRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=128)),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="stored_responses",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("previous_id", NameColumn(null=True, max_length=128)),
                ("model", NameColumn(max_length=256)),
                ("source", NameColumn(max_length=128)),
                ("response", JsonColumn(unique=False)),
                ("input", JsonColumn(unique=False)),
                ("events", JsonColumn(unique=False)),
                ("size", IntegerColumn()),
                ("created_at", IntegerColumn()),
                ("expires_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "stored_responses",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "created_at", "id"])],
                "pk_attr": "id",
                "table_description": "One response with the input of its request, which continues the one"
                " that previous_id names.",
            },
            bases=["Model"],
        ),
    ]
