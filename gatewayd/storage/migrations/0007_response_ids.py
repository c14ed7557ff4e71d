"""Who received what a provider keeps under an id: responses, their items, containers."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn


class Migration(migrations.Migration):
    """Make the table of the ids that users received."""

    dependencies = [("gatewayd", "0006_roles")]

    operations = [
        ops.CreateModel(
            name="ResponseIdRow",
            fields=[
                ("digest", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("user_id", NameColumn(max_length=64)),
                ("created_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "response_ids",
                "app": "gatewayd",
                "indexes": [Index(fields=["user_id", "created_at"])],
                "pk_attr": "digest",
                "table_description": "One id of a provider, digested, and the user who received it first.",
            },
            bases=["Model"],
        ),
    ]
