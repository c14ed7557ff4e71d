"""Links of accounts to persons at identity providers, and values that may be used once."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, NameColumn, TextColumn


class Migration(migrations.Migration):
    """Make the tables; a subject that was entered before is linked at the first sign-in."""

    dependencies = [("gatewayd", "0010_sessions")]

    operations = [
        ops.CreateModel(
            name="UserIdentityRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_index=False,
                        db_constraint=True,
                        to_field="id",
                        related_name="identities",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("provider", NameColumn(max_length=128)),
                ("issuer", NameColumn(max_length=256)),
                ("subject", NameColumn(max_length=384)),
                ("provisioning_id", NameColumn(max_length=384)),
                ("email", NameColumn(max_length=320)),
                ("id_token", TextColumn(unique=False)),
                ("refresh_token", TextColumn(unique=False)),
                ("linked_at", IntegerColumn()),
                ("used_at", IntegerColumn()),
            ],
            options={
                "table": "user_identities",
                "app": "gatewayd",
                "unique_together": (("issuer", "subject"), ("user", "provider")),
                "pk_attr": "id",
                "table_description": ("One link of a user to a person at a provider, with encrypted tokens."),
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UsedValueRow",
            fields=[
                ("digest", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("expires_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "used_values",
                "app": "gatewayd",
                "pk_attr": "digest",
                "table_description": (
                    "One value that may be used once, digested: the state of a sign-in, the id of a logout"
                    " token."
                ),
            },
            bases=["Model"],
        ),
    ]
