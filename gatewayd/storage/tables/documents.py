"""The tables of documents: files, texts, passages, vectors, jobs, collections; rules as in `accounts`."""

from typing import Any, Final

from tortoise import fields
from tortoise.models import Model

from gatewayd.storage.engine.fields import Json, Name, Text, Whole
from gatewayd.storage.tables.accounts import KEY_LENGTH

REMOVED: Final = "removed"
"""The status of a row of `files` that is a marker of stale passages and no file: see `storage.stale`."""


class FileRow(Model):
    """One document, without its bytes, text and passages."""

    id = Name(max_length=64, primary_key=True)
    user_id = Name(max_length=64)
    name = Name(max_length=255)
    name_key = Name(max_length=KEY_LENGTH)
    size = Whole()
    digest = Name(max_length=64, db_index=True)
    checksum = Name(max_length=255)
    content_type = Name(max_length=255, null=True)
    status = Name(max_length=16, db_index=True)
    error = Text(null=True)
    text_hash = Name(max_length=64, null=True, db_index=True)
    characters = Whole()
    chunks = Whole()
    pages = Whole(null=True)
    blank_pages = Whole(db_default=0)
    data = Json()
    updated_at = Whole()
    created_at = Whole(db_index=True)

    class Meta:
        table = "files"
        # A user's newest ones.
        indexes = (("user_id", "created_at", "id"),)


class FileTextRow(Model):
    """The extracted text of a file, and beside it the staged one that will take its place."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="texts")
    staged = fields.BooleanField()
    text = Text()

    class Meta:
        table = "file_texts"
        unique_together = (("file", "staged"),)


class PassageRow(Model):
    """One chunk of a text, not to be found while it is staged."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="passages")
    staged = fields.BooleanField()
    number = Whole()
    start = Whole()
    page = Whole(null=True)
    heading = Text(null=True)
    text = Text()
    # What is indexed in place of the text, where that has scripts without blanks.
    segmented = Text(null=True)

    class Meta:
        table = "passages"
        indexes = (("file_id", "staged", "number"),)


class SpaceRow(Model):
    """One embedding model, whose vectors compare with each other."""

    id = fields.BigIntField(primary_key=True)
    name = Name(max_length=255, unique=True)
    dimension = Whole()
    is_active = fields.BooleanField()

    class Meta:
        table = "embedding_spaces"


class VectorBatchRow(Model):
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


class JobRow(Model):
    """One file that waits for its passages, or is being worked on under a lease."""

    id = fields.BigIntField(primary_key=True)
    file: Any = fields.OneToOneField("gatewayd.FileRow", related_name="job")
    attempts = Whole()
    not_before = Whole(db_index=True)
    lease_owner = Name(max_length=64)
    lease_until = Whole()
    error = Text(null=True)
    created_at = Whole()

    class Meta:
        table = "ingest_jobs"


class CollectionRow(Model):
    """One collection, whose number names its lexical index."""

    id = Name(max_length=64, primary_key=True)
    number = Whole(unique=True)
    user_id = Name(max_length=64, db_index=True)
    name = Name(max_length=255)
    name_key = Name(max_length=KEY_LENGTH, db_index=True)
    description = Text()
    description_key = Text()
    meta = Json()
    updated_at = Whole(db_index=True)
    created_at = Whole()

    class Meta:
        table = "collections"


class LinkRow(Model):
    """One file in one collection, and its place there, digested to be looked up by."""

    id = fields.BigIntField(primary_key=True)
    collection: Any = fields.ForeignKeyField("gatewayd.CollectionRow", related_name="links")
    file: Any = fields.ForeignKeyField("gatewayd.FileRow", related_name="links", db_index=True)
    user_id = Name(max_length=64)
    origin = Text()
    path = Text()
    place = Name(max_length=64)
    directory_id = Name(max_length=64, null=True)
    created_at = Whole()

    class Meta:
        table = "collection_files"
        unique_together = (("collection", "file"),)
        # A page of a collection's files is in the order of linking.
        indexes = (("collection_id", "place"), ("collection_id", "id"))


class DirectoryRow(Model):
    """One directory of a collection."""

    id = Name(max_length=64, primary_key=True)
    collection: Any = fields.ForeignKeyField("gatewayd.CollectionRow", related_name="directories")
    parent_id = Name(max_length=64, null=True)
    name = Name(max_length=255)
    user_id = Name(max_length=64)
    updated_at = Whole()
    created_at = Whole()

    class Meta:
        table = "collection_directories"
        indexes = (("collection_id", "parent_id"),)
