"""Batches of requests, and their files."""

from typing import Any

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn


def _user(related_name: str) -> tuple[str, Any]:
    return (
        "user",
        fields.ForeignKeyField(
            "gatewayd.UserRow",
            source_field="user_id",
            db_constraint=True,
            to_field="id",
            related_name=related_name,
            on_delete=OnDelete.CASCADE,
        ),
    )


class Migration(migrations.Migration):
    """Make the tables of batches and of their files."""

    dependencies = [("gatewayd", "0015_streams")]

    operations = [
        ops.CreateModel(
            name="BatchFileRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                _user("batch_files"),
                ("name", NameColumn(max_length=255)),
                ("purpose", NameColumn(max_length=32)),
                ("size", IntegerColumn()),
                ("created_at", IntegerColumn()),
                ("expires_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "batch_files",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "created_at", "id"])],
                "pk_attr": "id",
                "table_description": "One file of requests or results, whose bytes are a blob.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="BatchRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                _user("batches"),
                ("dialect", NameColumn(max_length=16)),
                ("endpoint", NameColumn(max_length=64)),
                ("status", NameColumn(db_index=True, max_length=16)),
                ("input_file_id", NameColumn(max_length=64)),
                ("output_file_id", NameColumn(null=True, max_length=64)),
                ("error_file_id", NameColumn(null=True, max_length=64)),
                ("key_id", NameColumn(null=True, max_length=64)),
                ("total", IntegerColumn()),
                ("completed", IntegerColumn()),
                ("failed", IntegerColumn()),
                ("metadata", JsonColumn(unique=False)),
                ("errors", JsonColumn(unique=False)),
                ("created_at", IntegerColumn()),
                ("expires_at", IntegerColumn()),
                ("started_at", IntegerColumn(null=True)),
                ("cancelled_at", IntegerColumn(null=True)),
                ("ended_at", IntegerColumn(null=True)),
            ],
            options={
                "table": "batches",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "created_at", "id"])],
                "pk_attr": "id",
                "table_description": "One batch: a file of requests to an endpoint, and what became of them.",
            },
            bases=["Model"],
        ),
    ]
