"""The roles that identity providers give, and a family name for accounts whose name is one word."""

from typing import Any, Final

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import JsonColumn

# A name without a blank is the given name and the family name of an account that was made by hand.
FAMILY_NAMES: Final = (
    "UPDATE users SET family_name_key = given_name_key WHERE user_name IS NULL AND family_name_key = ''"
)


async def fill_in(_: Any, editor: Any) -> None:
    """Write the keys of the family names."""
    await editor.client.execute_query(FAMILY_NAMES)


class Migration(migrations.Migration):
    """Add the column of the roles."""

    dependencies = [("gatewayd", "0005_chats")]

    operations = [
        ops.AddField("UserRow", "roles", JsonColumn(null=True, unique=False)),
        ops.RunPython(fill_in),
    ]
