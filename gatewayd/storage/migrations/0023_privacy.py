"""Files by their age."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    """Make the index of files by the time of their last change."""

    dependencies = [("gatewayd", "0020_usage")]

    operations = [ops.AddIndex("FileRow", Index(fields=["updated_at", "id"]))]
