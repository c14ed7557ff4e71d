"""Tables of accounts and models: row classes, which only stores use.

A change here needs a migration; a test compares the two. A column `*_key` contains a case-folded name for
comparisons. The docstring of a row becomes the comment of its table: plain words, no quotes, no semicolon.
"""

from typing import Any

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn
from gatewayd.storage.tables.row_model import RowModel

# Case folding makes at most three characters of one.
KEY_LENGTH = 3 * 255
ADDRESS_LENGTH = 320
ADDRESS_KEY_LENGTH = 3 * ADDRESS_LENGTH
# A provider and its identifier share an index entry of at most 2600 bytes.
PROVIDER_LENGTH = 128
FOREIGN_ID_LENGTH = 512


class UserRow(RowModel):
    """One account. Keys are those of what is shown, empty when nothing is shown."""

    id = NameColumn(max_length=64, primary_key=True)
    email = NameColumn(max_length=ADDRESS_LENGTH, unique=True)
    username = NameColumn(max_length=255, unique=True, null=True)
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH)
    role = NameColumn(max_length=16)
    active = fields.BooleanField()
    password_hash = NameColumn(max_length=512, null=True)
    profile_image_url = TextColumn()
    token_version = IntegerColumn()
    profile = JsonColumn()
    settings = JsonColumn(null=True)
    info = JsonColumn(null=True)
    oauth = JsonColumn(null=True)
    scim = JsonColumn(null=True)
    last_active_at = IntegerColumn()
    updated_at = IntegerColumn()
    created_at = IntegerColumn(db_index=True)
    user_name = NameColumn(max_length=ADDRESS_LENGTH, null=True)
    display_name = NameColumn(max_length=255, null=True)
    formatted_name = NameColumn(max_length=255, null=True)
    given_name = NameColumn(max_length=255, null=True)
    family_name = NameColumn(max_length=255, null=True)
    emails = JsonColumn(null=True)
    roles = JsonColumn(null=True)
    user_name_key = NameColumn(max_length=ADDRESS_KEY_LENGTH, db_default="")
    display_name_key = NameColumn(max_length=KEY_LENGTH, db_default="")
    formatted_name_key = NameColumn(max_length=KEY_LENGTH, db_default="")
    given_name_key = NameColumn(max_length=KEY_LENGTH, db_default="")
    family_name_key = NameColumn(max_length=KEY_LENGTH, db_default="")
    modified_us = IntegerColumn(db_default=0)

    class Meta:
        table = "users"
        unique_together = (("user_name_key",),)
        # Covering indexes for a search in display names in the order of creation, and by name or in its
        # order.
        indexes = (("id", "display_name_key"), ("display_name_key", "id"))


class UserEmailRow(RowModel):
    """One shown address of a user, to look it up by."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="addresses", db_index=True)
    value_key = NameColumn(max_length=ADDRESS_KEY_LENGTH, db_index=True)
    type_key = NameColumn(max_length=KEY_LENGTH)
    is_primary = fields.BooleanField()

    class Meta:
        table = "user_emails"


class UserExternalIdRow(RowModel):
    """What a provider calls a user."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="external_ids")
    provider = NameColumn(max_length=PROVIDER_LENGTH)
    external_id = NameColumn(max_length=FOREIGN_ID_LENGTH)

    class Meta:
        table = "user_external_ids"
        unique_together = (("provider", "external_id"), ("user", "provider"))


class UserSubjectRow(RowModel):
    """The OAuth subject that a user is to a provider."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="subjects")
    provider = NameColumn(max_length=PROVIDER_LENGTH)
    subject = NameColumn(max_length=FOREIGN_ID_LENGTH)

    class Meta:
        table = "user_subjects"
        unique_together = (("provider", "subject"), ("user", "provider"))


class UserIdentityRow(RowModel):
    """One link of a user to a person at a provider, with encrypted tokens."""

    id = fields.BigIntField(primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="identities")
    provider = NameColumn(max_length=PROVIDER_LENGTH)
    issuer = NameColumn(max_length=256)
    subject = NameColumn(max_length=384)
    provisioning_id = NameColumn(max_length=384)
    email = NameColumn(max_length=ADDRESS_LENGTH)
    id_token = TextColumn()
    refresh_token = TextColumn()
    access_token = TextColumn(db_default="")
    expires_at = IntegerColumn(db_default=0)
    linked_at = IntegerColumn()
    used_at = IntegerColumn()

    class Meta:
        table = "user_identities"
        unique_together = (("issuer", "subject"), ("user", "provider"))


class UsedValueRow(RowModel):
    """One value that may be used once, digested: the state of a sign-in, the id of a logout token."""

    digest = NameColumn(max_length=64, primary_key=True)
    expires_at = IntegerColumn(db_index=True)

    class Meta:
        table = "used_values"


class GroupRow(RowModel):
    """One group, whose name_key is the name folded to one case."""

    id = NameColumn(max_length=64, primary_key=True)
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH, unique=True)
    description = TextColumn()
    user_id = NameColumn(max_length=64, null=True)
    permissions = JsonColumn()
    data = JsonColumn()
    meta = JsonColumn()
    updated_at = IntegerColumn()
    created_at = IntegerColumn()
    scim = JsonColumn(null=True)
    modified_us = IntegerColumn(db_default=0)

    class Meta:
        table = "groups"


class GroupExternalIdRow(RowModel):
    """What a provider calls a group."""

    id = fields.BigIntField(primary_key=True)
    group: Any = fields.ForeignKeyField("gatewayd.GroupRow", related_name="external_ids")
    provider = NameColumn(max_length=PROVIDER_LENGTH)
    external_id = NameColumn(max_length=FOREIGN_ID_LENGTH)

    class Meta:
        table = "group_external_ids"
        unique_together = (("provider", "external_id"), ("group", "provider"))


class MembershipRow(RowModel):
    """One user in one group, once for each source that put it there, which may have named the user."""

    id = fields.BigIntField(primary_key=True)
    group: Any = fields.ForeignKeyField("gatewayd.GroupRow", related_name="memberships")
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="memberships")
    source = NameColumn(max_length=32)
    created_at = IntegerColumn()
    display = NameColumn(max_length=255, null=True)

    class Meta:
        table = "group_members"
        unique_together = (("group", "user", "source"),)
        indexes = (("user_id", "group_id"),)


class ApiKeyRow(RowModel):
    """One API key, without its value."""

    id = NameColumn(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="keys")
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH)
    digest = NameColumn(max_length=64, unique=True)
    prefix = NameColumn(max_length=32)
    expires_at = IntegerColumn(null=True)
    last_used_at = IntegerColumn(null=True)
    created_at = IntegerColumn()

    class Meta:
        table = "api_keys"
        unique_together = (("user", "name_key"),)


class ScimTokenRow(RowModel):
    """One token of SCIM clients, as its digest. The highest id is the newest. Retired ones stay refused."""

    id = fields.BigIntField(primary_key=True, generated=True)
    digest = NameColumn(max_length=64, unique=True)
    created_at = IntegerColumn()
    retired_at = IntegerColumn(null=True)

    class Meta:
        table = "scim_tokens"


class RevocationRow(RowModel):
    """One session token that was ended before its time."""

    jti = NameColumn(max_length=64, primary_key=True)
    user_id = NameColumn(max_length=64)
    expires_at = IntegerColumn(db_index=True)

    class Meta:
        table = "revoked_tokens"


class SessionRow(RowModel):
    """One sign-in, by the id of its token."""

    jti = NameColumn(max_length=64, primary_key=True)
    user: Any = fields.ForeignKeyField("gatewayd.UserRow", related_name="sessions", db_index=True)
    token_version = IntegerColumn()
    created_at = IntegerColumn()
    expires_at = IntegerColumn(db_index=True)
    last_seen_at = IntegerColumn()
    confirmed_at = IntegerColumn()
    method = NameColumn(max_length=16)
    provider = NameColumn(max_length=PROVIDER_LENGTH)
    provider_session = NameColumn(max_length=FOREIGN_ID_LENGTH)
    user_agent = NameColumn(max_length=255)
    address = NameColumn(max_length=64)

    class Meta:
        table = "sessions"
        indexes = (("provider", "provider_session"),)


class OneTimeLinkRow(RowModel):
    """One invitation or sign-in link, without its token. It is deleted when it is used."""

    id = NameColumn(max_length=64, primary_key=True)
    digest = NameColumn(max_length=64, unique=True)
    kind = NameColumn(max_length=16)
    email = NameColumn(max_length=ADDRESS_LENGTH)
    user_id = NameColumn(max_length=64)
    role = NameColumn(max_length=16)
    group_ids = JsonColumn()
    created_by = NameColumn(max_length=255)
    created_at = IntegerColumn()
    expires_at = IntegerColumn(db_index=True)

    class Meta:
        table = "one_time_links"


class ResponseIdRow(RowModel):
    """One id of a provider, digested, and the user who received it first."""

    digest = NameColumn(max_length=64, primary_key=True)
    user_id = NameColumn(max_length=64)
    created_at = IntegerColumn(db_index=True)

    class Meta:
        table = "response_ids"
        # The newest ids of a user.
        indexes = (("user_id", "created_at"),)


class ValueRow(RowModel):
    """One stored JSON value by name."""

    name = NameColumn(max_length=255, primary_key=True)
    value = JsonColumn()
    updated_at = IntegerColumn()
    updated_by = NameColumn(max_length=255)

    class Meta:
        table = "stored_values"


class ModelRow(RowModel):
    """What an administrator keeps about a model."""

    id = NameColumn(max_length=256, primary_key=True)
    user_id = NameColumn(max_length=64)
    name = NameColumn(max_length=255)
    base_model_id = NameColumn(max_length=256, null=True)
    params = JsonColumn()
    meta = JsonColumn()
    is_active = fields.BooleanField()
    updated_at = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "models"


class GrantRow(RowModel):
    """One row of an access list."""

    id = fields.BigIntField(primary_key=True)
    resource_type = NameColumn(max_length=32)
    resource_id = NameColumn(max_length=256)
    principal_type = NameColumn(max_length=16)
    principal_id = NameColumn(max_length=64)
    permission = NameColumn(max_length=16)

    class Meta:
        table = "access_grants"
        unique_together = (("resource_type", "resource_id", "principal_type", "principal_id", "permission"),)
