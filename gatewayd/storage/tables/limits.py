"""Tables of limits, of the counters of their budgets, and of open reservations."""

from typing import Any

from tortoise import fields
from tortoise.models import Model

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn


class LimitRow(Model):
    """One limit of a key, user, group or of all, for one model or for all models ("")."""

    id = NameColumn(max_length=64, primary_key=True)
    subject = NameColumn(max_length=16)
    subject_id = NameColumn(max_length=64)
    subject_name = NameColumn(max_length=255)
    model = NameColumn(max_length=255)
    requests_per_minute = IntegerColumn(null=True)
    tokens_per_minute = IntegerColumn(null=True)
    parallel = IntegerColumn(null=True)
    budgets = JsonColumn()
    warn_percent = IntegerColumn(null=True)
    storage_bytes = IntegerColumn(null=True)
    created_at = IntegerColumn()
    updated_at = IntegerColumn()

    class Meta:
        table = "limits"
        unique_together = (("subject", "subject_id", "model"),)


class LimitCounterRow(Model):
    """The amount that a budget has used in one period, and the part of it that calls in flight hold."""

    id = NameColumn(max_length=255, primary_key=True)
    limit: Any = fields.ForeignKeyField("gatewayd.LimitRow", related_name="counters")
    used = IntegerColumn()
    reserved = IntegerColumn()
    warned = IntegerColumn()
    starts_at = IntegerColumn(db_index=True)

    class Meta:
        table = "limit_counters"


class LimitReservationRow(Model):
    """What one call in flight holds of one counter, and the process that makes the call."""

    id = fields.BigIntField(primary_key=True)
    call_id = NameColumn(max_length=64, db_index=True)
    counter: Any = fields.ForeignKeyField("gatewayd.LimitCounterRow", related_name="reservations")
    node = NameColumn(max_length=64)
    amount = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "limit_reservations"
