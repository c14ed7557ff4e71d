"""How many pages of a document have no text."""

from tortoise import migrations
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn


class Migration(migrations.Migration):
    """Add the column; what was read before says nothing of its pages."""

    dependencies = [("gatewayd", "0008_segmented_words")]

    operations = [ops.AddField("FileRow", "blank_pages", IntegerColumn(db_default=0))]
