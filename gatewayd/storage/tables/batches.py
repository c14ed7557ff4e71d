"""Tables of batches and their files."""

from typing import Any

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn
from gatewayd.storage.tables.row_model import RowModel

BATCH_ID_LENGTH = 64


class BatchFileRow(RowModel):
    """One file of requests or results, whose bytes are a blob."""

    id = NameColumn(max_length=BATCH_ID_LENGTH, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="batch_files")
    name = NameColumn(max_length=255)
    purpose = NameColumn(max_length=32)
    size = IntegerColumn()
    created_at = IntegerColumn()
    expires_at = IntegerColumn(db_index=True)

    class Meta:
        table = "batch_files"
        # The newest files of a user.
        indexes = (("user_id", "created_at", "id"),)


class BatchRow(RowModel):
    """One batch: a file of requests to an endpoint, and what became of them."""

    id = NameColumn(max_length=BATCH_ID_LENGTH, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="batches")
    dialect = NameColumn(max_length=16)
    endpoint = NameColumn(max_length=64)
    status = NameColumn(max_length=16, db_index=True)
    input_file_id = NameColumn(max_length=BATCH_ID_LENGTH)
    output_file_id = NameColumn(max_length=BATCH_ID_LENGTH, null=True)
    error_file_id = NameColumn(max_length=BATCH_ID_LENGTH, null=True)
    key_id = NameColumn(max_length=64, null=True)
    total = IntegerColumn()
    completed = IntegerColumn()
    failed = IntegerColumn()
    metadata = JsonColumn()
    errors = JsonColumn()
    created_at = IntegerColumn()
    expires_at = IntegerColumn()
    started_at = IntegerColumn(null=True)
    cancelled_at = IntegerColumn(null=True)
    ended_at = IntegerColumn(null=True)

    class Meta:
        table = "batches"
        # The newest batches of a user.
        indexes = (("user_id", "created_at", "id"),)


class PassedBatchRow(RowModel):
    """The state of a batch that a provider runs. It is stored before the provider is asked to begin."""

    id = fields.BigIntField(primary_key=True, generated=True)
    batch: Any = fields.ForeignKeyField("gatewayd.BatchRow", related_name="passed")
    state = JsonColumn()

    class Meta:
        table = "passed_batches"
        unique_together = (("batch_id",),)


class BatchAnswersRow(RowModel):
    """Answers to finished lines of an unfinished batch, in the order in which they were stored."""

    id = fields.BigIntField(primary_key=True, generated=True)
    batch: Any = fields.ForeignKeyField("gatewayd.BatchRow", related_name="answers")
    size = IntegerColumn()
    records = fields.BinaryField()

    class Meta:
        table = "batch_answers"
        indexes = (("batch_id", "id"),)
