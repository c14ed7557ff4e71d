"""Sessions that their owners can list and end, and links that work once."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn


class Migration(migrations.Migration):
    """Make the tables; sessions that were issued before have no row and stay valid until they expire."""

    dependencies = [("gatewayd", "0009_blank_pages")]

    operations = [
        ops.CreateModel(
            name="SessionRow",
            fields=[
                ("jti", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_index=True,
                        db_constraint=True,
                        to_field="id",
                        related_name="sessions",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("token_version", IntegerColumn()),
                ("created_at", IntegerColumn()),
                ("expires_at", IntegerColumn(db_index=True)),
                ("last_seen_at", IntegerColumn()),
                ("confirmed_at", IntegerColumn()),
                ("method", NameColumn(max_length=16)),
                ("provider", NameColumn(max_length=128)),
                ("provider_session", NameColumn(max_length=512)),
                ("user_agent", NameColumn(max_length=255)),
                ("address", NameColumn(max_length=64)),
            ],
            options={
                "table": "sessions",
                "app": "gatewayd",
                "indexes": [Index(fields=["provider", "provider_session"])],
                "pk_attr": "jti",
                "table_description": "One sign-in, by the id of its token.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="OneTimeLinkRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("digest", NameColumn(unique=True, max_length=64)),
                ("kind", NameColumn(max_length=16)),
                ("email", NameColumn(max_length=320)),
                ("user_id", NameColumn(max_length=64)),
                ("role", NameColumn(max_length=16)),
                ("group_ids", JsonColumn()),
                ("created_by", NameColumn(max_length=255)),
                ("created_at", IntegerColumn()),
                ("expires_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "one_time_links",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": (
                    "One invitation or sign-in link, without its token. It is deleted when it is used."
                ),
            },
            bases=["Model"],
        ),
    ]
