"""The key of the bytes of a file, which differs from its id where clients choose ids."""

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import NameColumn


class Migration(migrations.Migration):
    """Add the column; an empty key is the id of the file."""

    dependencies = [("gatewayd", "0020_usage")]

    operations = [ops.AddField("FileRow", "blob", NameColumn(max_length=128, db_default=""))]
