"""The first schema."""

from orjson import loads
from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.fields.data import JSON_DUMPS
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.CreateModel(
            name="GrantRow",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("resource_type", fields.CharField(max_length=32)),
                ("resource_id", fields.CharField(max_length=256)),
                ("principal_type", fields.CharField(max_length=16)),
                ("principal_id", fields.CharField(max_length=64)),
                ("permission", fields.CharField(max_length=16)),
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
                ("id", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("name", fields.CharField(max_length=255)),
                ("name_key", fields.CharField(unique=True, max_length=512)),
                ("description", fields.TextField(unique=False)),
                ("user_id", fields.CharField(null=True, max_length=64)),
                ("permissions", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("data", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("meta", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("updated_at", fields.BigIntField(default=0)),
                ("created_at", fields.BigIntField(default=0)),
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
                ("id", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=256)),
                ("user_id", fields.CharField(max_length=64)),
                ("name", fields.CharField(max_length=255)),
                ("base_model_id", fields.CharField(null=True, max_length=256)),
                ("params", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("meta", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("is_active", fields.BooleanField(default=True)),
                ("updated_at", fields.BigIntField(default=0)),
                ("created_at", fields.BigIntField(default=0)),
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
                ("jti", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("user_id", fields.CharField(max_length=64)),
                ("expires_at", fields.BigIntField(db_index=True)),
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
                ("id", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("email", fields.CharField(unique=True, max_length=254)),
                ("username", fields.CharField(null=True, unique=True, max_length=255)),
                ("name", fields.CharField(max_length=255)),
                ("search_key", fields.TextField(unique=False)),
                ("role", fields.CharField(max_length=16)),
                ("active", fields.BooleanField(default=True)),
                ("password_hash", fields.CharField(null=True, max_length=255)),
                ("profile_image_url", fields.TextField(unique=False)),
                ("token_version", fields.BigIntField(default=0)),
                ("profile", fields.JSONField(encoder=JSON_DUMPS, decoder=loads)),
                ("settings", fields.JSONField(null=True, encoder=JSON_DUMPS, decoder=loads)),
                ("info", fields.JSONField(null=True, encoder=JSON_DUMPS, decoder=loads)),
                ("oauth", fields.JSONField(null=True, encoder=JSON_DUMPS, decoder=loads)),
                ("scim", fields.JSONField(null=True, encoder=JSON_DUMPS, decoder=loads)),
                ("last_active_at", fields.BigIntField(default=0)),
                ("updated_at", fields.BigIntField(default=0)),
                ("created_at", fields.BigIntField(default=0, db_index=True)),
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
                ("id", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=64)),
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
                ("name", fields.CharField(max_length=255)),
                ("name_key", fields.CharField(max_length=512)),
                ("digest", fields.CharField(unique=True, max_length=64)),
                ("prefix", fields.CharField(max_length=32)),
                ("expires_at", fields.BigIntField(null=True)),
                ("last_used_at", fields.BigIntField(null=True)),
                ("created_at", fields.BigIntField(default=0)),
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
                ("source", fields.CharField(max_length=16)),
                ("created_at", fields.BigIntField(default=0)),
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
                ("name", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=128)),
                ("value", fields.JSONField(null=True, encoder=JSON_DUMPS, decoder=loads)),
                ("updated_at", fields.BigIntField(default=0)),
                ("updated_by", fields.CharField(max_length=255)),
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
