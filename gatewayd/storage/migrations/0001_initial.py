"""The first schema."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn


class Migration(migrations.Migration):
    """Make every table."""

    initial = True

    operations = [
        ops.CreateModel(
            name="GrantRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("resource_type", NameColumn(max_length=32)),
                ("resource_id", NameColumn(max_length=256)),
                ("principal_type", NameColumn(max_length=16)),
                ("principal_id", NameColumn(max_length=64)),
                ("permission", NameColumn(max_length=16)),
            ],
            options={
                "table": "access_grants",
                "app": "gatewayd",
                "unique_together": (
                    ("resource_type", "resource_id", "principal_type", "principal_id", "permission"),
                ),
                "pk_attr": "id",
                "table_description": "One row of an access list.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="GroupRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(unique=True, max_length=765)),
                ("description", TextColumn(unique=False)),
                ("user_id", NameColumn(null=True, max_length=64)),
                ("permissions", JsonColumn(unique=False)),
                ("data", JsonColumn(unique=False)),
                ("meta", JsonColumn(unique=False)),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "groups",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "One group, whose name_key is the name folded to one case.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ModelRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=256)),
                ("user_id", NameColumn(max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("base_model_id", NameColumn(null=True, max_length=256)),
                ("params", JsonColumn(unique=False)),
                ("meta", JsonColumn(unique=False)),
                ("is_active", fields.BooleanField()),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "models",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "What an administrator keeps about a model.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="RevocationRow",
            fields=[
                ("jti", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("user_id", NameColumn(max_length=64)),
                ("expires_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "revoked_tokens",
                "app": "gatewayd",
                "pk_attr": "jti",
                "table_description": "One session token that was ended before its time.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UserRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("email", NameColumn(unique=True, max_length=320)),
                ("username", NameColumn(null=True, unique=True, max_length=255)),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(max_length=765)),
                ("role", NameColumn(max_length=16)),
                ("active", fields.BooleanField()),
                ("password_hash", NameColumn(null=True, max_length=512)),
                ("profile_image_url", TextColumn(unique=False)),
                ("token_version", IntegerColumn()),
                ("profile", JsonColumn(unique=False)),
                ("settings", JsonColumn(null=True, unique=False)),
                ("info", JsonColumn(null=True, unique=False)),
                ("oauth", JsonColumn(null=True, unique=False)),
                ("scim", JsonColumn(null=True, unique=False)),
                ("last_active_at", IntegerColumn()),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn(db_index=True)),
            ],
            options={
                "table": "users",
                "app": "gatewayd",
                "pk_attr": "id",
                "table_description": "One account.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ApiKeyRow",
            fields=[
                ("id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="keys",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(max_length=765)),
                ("digest", NameColumn(unique=True, max_length=64)),
                ("prefix", NameColumn(max_length=32)),
                ("expires_at", IntegerColumn(null=True)),
                ("last_used_at", IntegerColumn(null=True)),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "api_keys",
                "app": "gatewayd",
                "unique_together": (("user", "name_key"),),
                "pk_attr": "id",
                "table_description": "One API key, without its value.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="MembershipRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "group",
                    fields.ForeignKeyField(
                        "gatewayd.GroupRow",
                        source_field="group_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="memberships",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                (
                    "user",
                    fields.ForeignKeyField(
                        "gatewayd.UserRow",
                        source_field="user_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="memberships",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("source", NameColumn(max_length=32)),
                ("created_at", IntegerColumn()),
            ],
            options={
                "table": "group_members",
                "app": "gatewayd",
                "unique_together": (("group", "user"),),
                "indexes": [Index(fields=["user_id", "group_id"])],
                "pk_attr": "id",
                "table_description": "One user in one group, put there by hand, by SCIM or by OAuth.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ValueRow",
            fields=[
                ("name", NameColumn(primary_key=True, unique=True, db_index=True, max_length=255)),
                ("value", JsonColumn(unique=False)),
                ("updated_at", IntegerColumn()),
                ("updated_by", NameColumn(max_length=255)),
            ],
            options={
                "table": "stored_values",
                "app": "gatewayd",
                "pk_attr": "name",
                "table_description": "One stored JSON value by name.",
            },
            bases=["Model"],
        ),
    ]
