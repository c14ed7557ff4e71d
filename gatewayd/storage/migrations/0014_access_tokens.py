"""Access tokens of identity providers, which plugins get for the person who has signed in."""

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, TextColumn


class Migration(migrations.Migration):
    """Add the columns."""

    dependencies = [("gatewayd", "0013_responses")]

    operations = [
        ops.AddField("UserIdentityRow", "access_token", TextColumn(db_default="", unique=False)),
        ops.AddField("UserIdentityRow", "expires_at", IntegerColumn(db_default=0)),
    ]
