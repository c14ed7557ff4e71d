"""Tables of documents: files, texts, passages, vectors, jobs, collections; the rules are in `accounts`."""

from typing import Any, Final

from tortoise import fields

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn
from gatewayd.storage.tables.accounts import KEY_LENGTH
from gatewayd.storage.tables.row_model import RowModel

REMOVED: Final = "removed"
"""Status of a row of `files` that is a marker of stale passages (`storage.search.passage_removal`)."""


class FileRow(RowModel):
    """One document, without its bytes, text and passages."""

    id = NameColumn(max_length=64, primary_key=True)
    user_id = NameColumn(max_length=64)
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH)
    size = IntegerColumn()
    digest = NameColumn(max_length=64, db_index=True)
    checksum = NameColumn(max_length=255)
    content_type = NameColumn(max_length=255, null=True)
    status = NameColumn(max_length=16, db_index=True)
    error = TextColumn(null=True)
    text_hash = NameColumn(max_length=64, null=True, db_index=True)
    characters = IntegerColumn()
    chunks = IntegerColumn()
    pages = IntegerColumn(null=True)
    blank_pages = IntegerColumn(db_default=0)
    data = JsonColumn()
    blob = NameColumn(max_length=128, db_default="")
    updated_at = IntegerColumn()
    created_at = IntegerColumn(db_index=True)

    class Meta:
        table = "files"
        # The newest files of a user, the oldest ones of all, and the bytes of a user.
        indexes = (("user_id", "created_at", "id"), ("updated_at", "id"), ("user_id", "size"))


class FileTextRow(RowModel):
    """The extracted text of a file, and beside it the staged one that will take its place."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="texts")
    staged = fields.BooleanField()
    text = TextColumn()

    class Meta:
        table = "file_texts"
        unique_together = (("file", "staged"),)


class PassageRow(RowModel):
    """One chunk of a text, not to be found while it is staged."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="passages")
    staged = fields.BooleanField()
    number = IntegerColumn()
    start = IntegerColumn()
    page = IntegerColumn(null=True)
    heading = TextColumn(null=True)
    text = TextColumn()
    # Segmented text that is indexed instead of `text`, for scripts without blanks.
    segmented = TextColumn(null=True)

    class Meta:
        table = "passages"
        indexes = (("file_id", "staged", "number"),)


class SpaceRow(RowModel):
    """One embedding model, whose vectors compare with each other."""

    id = fields.BigIntField(primary_key=True)
    name = NameColumn(max_length=255, unique=True)
    dimension = IntegerColumn()
    is_active = fields.BooleanField()

    class Meta:
        table = "embedding_spaces"


class VectorBatchRow(RowModel):
    """The vectors of some passages of one file, with the ids of the passages."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="vectors")
    space: Any = fields.ForeignKeyField("gatewayd.SpaceRow", related_name="vectors")
    staged = fields.BooleanField()
    ids = fields.BinaryField()
    vectors = fields.BinaryField()

    class Meta:
        table = "vector_batches"
        indexes = (("file_id", "space_id"), ("space_id", "file_id"))


class JobRow(RowModel):
    """One file that waits for its passages, or is being worked on under a lease."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.OneToOneField("gatewayd.FileRow", related_name="job")
    attempts = IntegerColumn()
    not_before = IntegerColumn(db_index=True)
    lease_owner = NameColumn(max_length=64)
    lease_until = IntegerColumn()
    fence = IntegerColumn(db_default=0)
    error = TextColumn(null=True)
    created_at = IntegerColumn()

    class Meta:
        table = "ingest_jobs"


class CollectionRow(RowModel):
    """One collection, whose number names its lexical index."""

    id = NameColumn(max_length=64, primary_key=True)
    number = IntegerColumn(unique=True)
    user_id = NameColumn(max_length=64, db_index=True)
    name = NameColumn(max_length=255)
    name_key = NameColumn(max_length=KEY_LENGTH, db_index=True)
    description = TextColumn()
    description_key = TextColumn()
    meta = JsonColumn()
    updated_at = IntegerColumn(db_index=True)
    created_at = IntegerColumn()

    class Meta:
        table = "collections"


class LinkRow(RowModel):
    """One file in one collection, and its place there, digested to be looked up by."""

    id = fields.BigIntField(primary_key=True)
    collection: Any = fields.ForeignKeyField("gatewayd.CollectionRow", related_name="links")
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="links", db_index=True)
    user_id = NameColumn(max_length=64)
    origin = TextColumn()
    path = TextColumn()
    place = NameColumn(max_length=64)
    directory_id = NameColumn(max_length=64, null=True)
    created_at = IntegerColumn()

    class Meta:
        table = "collection_files"
        unique_together = (("collection", "file"),)
        # Pages of a collection's files in the order of linking.
        indexes = (("collection_id", "place"), ("collection_id", "id"))


class DirectoryRow(RowModel):
    """One directory of a collection."""

    id = NameColumn(max_length=64, primary_key=True)
    collection: Any = fields.ForeignKeyField("gatewayd.CollectionRow", related_name="directories")
    parent_id = NameColumn(max_length=64, null=True)
    name = NameColumn(max_length=255)
    user_id = NameColumn(max_length=64)
    updated_at = IntegerColumn()
    created_at = IntegerColumn()

    class Meta:
        table = "collection_directories"
        indexes = (("collection_id", "parent_id"),)
