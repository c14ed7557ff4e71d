"""Files by their age and size, and quotas of storage."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn


class Migration(migrations.Migration):
    """Make indexes of files by their last change and by size, and the quota of a limit."""

    dependencies = [("gatewayd", "0020_usage")]

    operations = [
        ops.AddIndex("FileRow", Index(fields=["updated_at", "id"])),
        ops.AddIndex("FileRow", Index(fields=["user_id", "size"])),
        ops.AddField("LimitRow", "storage_bytes", IntegerColumn(null=True)),
    ]
