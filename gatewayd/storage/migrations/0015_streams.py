"""Answers that go on without their client, and replies to repeated requests."""

from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn


class Migration(migrations.Migration):
    """Make the tables."""

    dependencies = [("gatewayd", "0014_access_tokens")]

    operations = [
        ops.CreateModel(
            name="StreamRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("user_id", NameColumn(max_length=255)),
                ("protocol", NameColumn(max_length=16)),
                ("state", NameColumn(db_index=True, max_length=16)),
                ("created_at", IntegerColumn()),
                ("ended_at", IntegerColumn(null=True)),
                ("last_frame", IntegerColumn()),
                ("size", IntegerColumn()),
                ("headers", JsonColumn(unique=False)),
            ],
            options={
                "table": "streams",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": (
                    "One answer that goes on without its client. An operator as its user has no account."
                ),
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="StreamFramesRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("stream_id", NameColumn(max_length=64)),
                ("first_frame", IntegerColumn()),
                ("last_frame", IntegerColumn()),
                ("frames", fields.BinaryField()),
            ],
            options={
                "table": "stream_frames",
                "app": "gatewayd",
                "unique_together": (("stream_id", "first_frame"),),
                "pk_attr": "id",
                "table_description": (
                    "Consecutive frames of one stream, joined, with the numbers of the first and the last."
                ),
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="IdempotentRequestRow",
            fields=[
                ("digest", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("user_id", NameColumn(max_length=255)),
                ("fingerprint", NameColumn(max_length=64)),
                ("reply", TextColumn(null=True, unique=False)),
                ("created_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "idempotent_requests",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "created_at"])],
                "pk_attr": "digest",
                "table_description": (
                    "One request with an idempotency key, digested with its user, and its encrypted reply."
                ),
            },
            bases=["Model"],
        ),
    ]
