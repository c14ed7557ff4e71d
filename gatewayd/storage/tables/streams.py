"""Tables of resumable streams and of requests with idempotency keys; the rules are in `accounts`."""

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn
from gatewayd.storage.tables.row_model import RowModel


class StreamRow(RowModel):
    """One answer that goes on without its client. An operator as its user has no account."""

    id = NameColumn(max_length=64, primary_key=True)
    user_id = NameColumn(max_length=255)
    protocol = NameColumn(max_length=16)
    state = NameColumn(max_length=16, db_index=True)
    created_at = IntegerColumn()
    ended_at = IntegerColumn(null=True)
    last_frame = IntegerColumn()
    size = IntegerColumn()
    headers = JsonColumn()
    node_id = NameColumn(max_length=64, db_default="")

    class Meta:
        table = "streams"


class StreamFramesRow(RowModel):
    """Consecutive frames of one stream, joined, with the numbers of the first and the last."""

    id = fields.BigIntField(primary_key=True)
    stream_id = NameColumn(max_length=64)
    first_frame = IntegerColumn()
    last_frame = IntegerColumn()
    frames = fields.BinaryField()

    class Meta:
        table = "stream_frames"
        unique_together = (("stream_id", "first_frame"),)


class IdempotentRequestRow(RowModel):
    """One request with an idempotency key, digested with its user, and its encrypted reply."""

    digest = NameColumn(max_length=64, primary_key=True)
    user_id = NameColumn(max_length=255)
    fingerprint = NameColumn(max_length=64)
    reply = TextColumn(null=True)
    created_at = IntegerColumn(db_index=True)

    class Meta:
        table = "idempotent_requests"
        # The newest requests of a user.
        indexes = (("user_id", "created_at"),)
