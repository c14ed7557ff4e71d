"""Nodes of a cluster, their leases, answers and streams, and fences of ingest jobs."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn


def _options(table: str, description: str) -> dict[str, object]:
    return {"table": table, "app": "gatewayd", "pk_attr": "id", "table_description": description}


class Migration(migrations.Migration):
    """Make the tables; no stream has a node yet, and no lease of a job a fence."""

    dependencies = [("gatewayd", "0020_usage")]

    operations = [
        ops.CreateModel(
            name="NodeRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("name", NameColumn(db_index=True, max_length=255)),
                ("version", NameColumn(max_length=64)),
                ("migration", NameColumn(max_length=255)),
                ("address", NameColumn(max_length=1024)),
                ("configuration", NameColumn(max_length=64)),
                ("secrets", NameColumn(max_length=64)),
                ("plugins", NameColumn(max_length=64)),
                ("is_draining", fields.BooleanField()),
                ("started_at", IntegerColumn()),
                ("until", IntegerColumn()),
            ],
            options=_options(
                "nodes", "One process of the gateway, which owns what it works on until the end of its lease."
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="LeaseRow",
            fields=[
                ("name", NameColumn(primary_key=True, unique=True, db_index=True, max_length=255)),
                ("node_id", NameColumn(max_length=64)),
                ("fence", IntegerColumn()),
                ("until", IntegerColumn()),
            ],
            options={
                **_options(
                    "leases",
                    "One duty that a single node does, with a fence that rises with each holder.",
                ),
                "pk_attr": "name",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="AnswerRunRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("task_id", NameColumn(db_index=True, max_length=64)),
                ("user_id", NameColumn(max_length=255)),
                ("chat_id", NameColumn(max_length=255)),
                ("message_id", NameColumn(max_length=255)),
                ("node_id", NameColumn(db_index=True, max_length=64)),
                ("is_stopped", fields.BooleanField()),
                ("started_at", IntegerColumn()),
            ],
            options={
                **_options(
                    "answer_runs",
                    "One message that a node is answering, whose id is the fence of the run.",
                ),
                "unique_together": (("user_id", "chat_id", "message_id"),),
            },
            bases=["Model"],
        ),
        ops.AddField("StreamRow", "node_id", NameColumn(max_length=64, db_default="")),
        ops.AddField("JobRow", "fence", IntegerColumn(db_default=0)),
    ]
