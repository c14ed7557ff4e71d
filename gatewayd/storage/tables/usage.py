"""Table of the usage of models."""

from tortoise.models import Model

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn


class UsageRow(Model):
    """Sums of the calls of a day (UTC) by a user with a key, of a model at a provider.

    `id` is the digest of the columns that tell rows apart. Users and keys may be gone; their names are the
    last ones. Times are in milliseconds, costs in nano-dollars. `timed` counts the calls whose first part was
    timed, `unpriced` those with tokens of an unknown price, `estimated` those whose tokens no provider told.
    """

    id = NameColumn(max_length=64, primary_key=True)
    day = NameColumn(max_length=10)
    user_id = NameColumn(max_length=255)
    user_name = NameColumn(max_length=320)
    key_id = NameColumn(max_length=64)
    key_name = NameColumn(max_length=255)
    model = NameColumn(max_length=255)
    provider = NameColumn(max_length=255)
    endpoint = NameColumn(max_length=32)
    requests = IntegerColumn()
    failures = IntegerColumn()
    prompt = IntegerColumn()
    cached = IntegerColumn()
    cache_written = IntegerColumn()
    completion = IntegerColumn()
    reasoning = IntegerColumn()
    milliseconds = IntegerColumn()
    first_milliseconds = IntegerColumn()
    timed = IntegerColumn()
    cost = IntegerColumn()
    unpriced = IntegerColumn()
    estimated = IntegerColumn()

    class Meta:
        table = "usage"
        # The days of all, and those of a user.
        indexes = (("day",), ("user_id", "day"))
