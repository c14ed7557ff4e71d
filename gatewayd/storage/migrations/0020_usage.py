"""Usage of models."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn


class Migration(migrations.Migration):
    """Make the table of usage."""

    dependencies = [("gatewayd", "0019_audit")]

    operations = [
        ops.CreateModel(
            name="UsageRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("day", NameColumn(max_length=10)),
                ("user_id", NameColumn(max_length=255)),
                ("user_name", NameColumn(max_length=320)),
                ("key_id", NameColumn(max_length=64)),
                ("key_name", NameColumn(max_length=255)),
                ("model", NameColumn(max_length=255)),
                ("provider", NameColumn(max_length=255)),
                ("endpoint", NameColumn(max_length=32)),
                ("requests", IntegerColumn()),
                ("failures", IntegerColumn()),
                ("prompt", IntegerColumn()),
                ("cached", IntegerColumn()),
                ("cache_written", IntegerColumn()),
                ("completion", IntegerColumn()),
                ("reasoning", IntegerColumn()),
                ("milliseconds", IntegerColumn()),
                ("first_milliseconds", IntegerColumn()),
                ("timed", IntegerColumn()),
                ("cost", IntegerColumn()),
                ("unpriced", IntegerColumn()),
                ("estimated", IntegerColumn()),
            ],
            options={
                "table": "usage",
                "app": "gatewayd",
                "indexes": [Index(fields=["day"]), Index(fields=["user_id", "day"])],
                "pk_attr": "id",
                "table_description": (
                    "Sums of the calls of a day (UTC) by a user with a key, of a model at a provider."
                ),
            },
            bases=["Model"],
        ),
    ]
