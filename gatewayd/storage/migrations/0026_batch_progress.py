"""States of batches that providers run, and answers of unfinished ones, which were files of each node."""

from typing import Any

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn


def _batch(related_name: str) -> tuple[str, Any]:
    return (
        "batch",
        fields.ForeignKeyField(
            "gatewayd.BatchRow",
            source_field="batch_id",
            db_constraint=True,
            to_field="id",
            related_name=related_name,
            on_delete=OnDelete.CASCADE,
        ),
    )


class Migration(migrations.Migration):
    """Make the tables; the daemon takes over the files."""

    dependencies = [("gatewayd", "0016_batches")]

    operations = [
        ops.CreateModel(
            name="PassedBatchRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                _batch("passed"),
                ("state", JsonColumn(unique=False)),
            ],
            options={
                "table": "passed_batches",
                "app": "gatewayd",
                "unique_together": (("batch_id",),),
                "pk_attr": "id",
                "table_description": "The state of a batch that a provider runs. It is stored before the"
                " provider is asked to begin.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="BatchAnswersRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                _batch("answers"),
                ("size", IntegerColumn()),
                ("records", fields.BinaryField()),
            ],
            options={
                "table": "batch_answers",
                "app": "gatewayd",
                "indexes": [Index(fields=["batch_id", "id"])],
                "pk_attr": "id",
                "table_description": "Answers to finished lines of an unfinished batch, in the order in which"
                " they were stored.",
            },
            bases=["Model"],
        ),
    ]
