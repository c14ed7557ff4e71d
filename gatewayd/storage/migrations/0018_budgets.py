"""Limits, counters of their budgets, and open reservations."""

from typing import Any

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn


def _owner(name: str, model: str, related_name: str) -> tuple[str, Any]:
    return (
        name,
        fields.ForeignKeyField(
            f"gatewayd.{model}",
            source_field=f"{name}_id",
            db_constraint=True,
            to_field="id",
            related_name=related_name,
            on_delete=OnDelete.CASCADE,
        ),
    )


class Migration(migrations.Migration):
    """Make the tables of limits, counters and reservations."""

    dependencies = [("gatewayd", "0016_batches")]

    operations = [
        ops.CreateModel(
            name="LimitRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("subject", NameColumn(max_length=16)),
                ("subject_id", NameColumn(max_length=64)),
                ("subject_name", NameColumn(max_length=255)),
                ("model", NameColumn(max_length=255)),
                ("requests_per_minute", IntegerColumn(null=True)),
                ("tokens_per_minute", IntegerColumn(null=True)),
                ("parallel", IntegerColumn(null=True)),
                ("budgets", JsonColumn(unique=False)),
                ("warn_percent", IntegerColumn(null=True)),
                ("created_at", IntegerColumn()),
                ("updated_at", IntegerColumn()),
            ],
            options={
                "table": "limits",
                "app": "gatewayd",
                "unique_together": (("subject", "subject_id", "model"),),
                "pk_attr": "id",
                "table_description": (
                    'One limit of a key, user, group or of all, for one model or for all models ("").'
                ),
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="LimitCounterRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=255)),
                _owner("limit", "LimitRow", "counters"),
                ("used", IntegerColumn()),
                ("reserved", IntegerColumn()),
                ("warned", IntegerColumn()),
                ("starts_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "limit_counters",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": (
                    "The amount that a budget has used in one period, and the part of it that calls in flight"
                    " hold."
                ),
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="LimitReservationRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("call_id", NameColumn(db_index=True, max_length=64)),
                _owner("counter", "LimitCounterRow", "reservations"),
                ("node", NameColumn(max_length=64)),
                ("amount", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "limit_reservations",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": (
                    "What one call in flight holds of one counter, and the process that makes the call."
                ),
            },
            bases=["Model"],
        ),
    ]
