"""The tables. A row is how a record is kept; everything else works with records.

The docstring of a row becomes the comment of its table: plain words, no quotes, no semicolon.
"""

from typing import Any

from tortoise import fields
from tortoise.models import Model


class UserRow(Model):
    """One account."""

    id = fields.CharField(max_length=64, primary_key=True)
    email = fields.CharField(max_length=254, unique=True)
    username = fields.CharField(max_length=255, unique=True, null=True)
    name = fields.CharField(max_length=255)
    # Name and e-mail folded to one case: SQLite folds ASCII only by itself.
    search_key = fields.TextField()
    role = fields.CharField(max_length=16)
    active = fields.BooleanField(default=True)
    password_hash = fields.CharField(max_length=255, null=True)
    profile_image_url = fields.TextField()
    token_version = fields.BigIntField(default=0)
    profile: Any = fields.JSONField()
    settings: Any = fields.JSONField(null=True)
    info: Any = fields.JSONField(null=True)
    oauth: Any = fields.JSONField(null=True)
    scim: Any = fields.JSONField(null=True)
    last_active_at = fields.BigIntField(default=0)
    updated_at = fields.BigIntField(default=0)
    created_at = fields.BigIntField(default=0, db_index=True)

    class Meta:
        table = "users"


class GroupRow(Model):
    """One group, whose name_key is the name folded to one case."""

    id = fields.CharField(max_length=64, primary_key=True)
    name = fields.CharField(max_length=255)
    name_key = fields.CharField(max_length=512, unique=True)
    description = fields.TextField()
    user_id = fields.CharField(max_length=64, null=True)
    permissions: Any = fields.JSONField()
    data: Any = fields.JSONField()
    meta: Any = fields.JSONField()
    updated_at = fields.BigIntField(default=0)
    created_at = fields.BigIntField(default=0)

    class Meta:
        table = "groups"


class MembershipRow(Model):
    """One user in one group, put there by hand, by SCIM or by OAuth."""

    id = fields.BigIntField(primary_key=True, generated=True)
    group: Any = fields.ForeignKeyField("gatewayd.GroupRow", related_name="memberships")
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="memberships")
    source = fields.CharField(max_length=16)
    created_at = fields.BigIntField(default=0)

    class Meta:
        table = "group_members"
        unique_together = (("group", "user"),)
        indexes = (("user_id", "group_id"),)


class ApiKeyRow(Model):
    """One API key, without its value."""

    id = fields.CharField(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="keys")
    name = fields.CharField(max_length=255)
    name_key = fields.CharField(max_length=512)
    digest = fields.CharField(max_length=64, unique=True)
    prefix = fields.CharField(max_length=32)
    expires_at = fields.BigIntField(null=True)
    last_used_at = fields.BigIntField(null=True)
    created_at = fields.BigIntField(default=0)

    class Meta:
        table = "api_keys"
        unique_together = (("user", "name_key"),)


class RevocationRow(Model):
    """One session token that was ended before its time."""

    jti = fields.CharField(max_length=64, primary_key=True)
    user_id = fields.CharField(max_length=64)
    expires_at = fields.BigIntField(db_index=True)

    class Meta:
        table = "revoked_tokens"


class ValueRow(Model):
    """One stored JSON value by name."""

    name = fields.CharField(max_length=128, primary_key=True)
    value: Any = fields.JSONField(null=True)
    updated_at = fields.BigIntField(default=0)
    updated_by = fields.CharField(max_length=255)

    class Meta:
        table = "stored_values"


class ModelRow(Model):
    """What an administrator keeps about a model."""

    id = fields.CharField(max_length=256, primary_key=True)
    user_id = fields.CharField(max_length=64)
    name = fields.CharField(max_length=255)
    base_model_id = fields.CharField(max_length=256, null=True)
    params: Any = fields.JSONField()
    meta: Any = fields.JSONField()
    is_active = fields.BooleanField(default=True)
    updated_at = fields.BigIntField(default=0)
    created_at = fields.BigIntField(default=0)

    class Meta:
        table = "models"


class GrantRow(Model):
    """One row of an access list."""

    id = fields.BigIntField(primary_key=True, generated=True)
    resource_type = fields.CharField(max_length=32)
    resource_id = fields.CharField(max_length=256)
    principal_type = fields.CharField(max_length=16)
    principal_id = fields.CharField(max_length=64)
    permission = fields.CharField(max_length=16)

    class Meta:
        table = "access_grants"
        unique_together = (("resource_type", "resource_id", "principal_type", "principal_id", "permission"),)
