"""Documents with their texts, passages and vectors, the queue that makes these, and collections."""

from typing import Any

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops

from gatewayd.storage.engine.fields import IntegerColumn, JsonColumn, NameColumn, TextColumn


def _named_id() -> tuple[str, Any]:
    return "id", NameColumn(primary_key=True, unique=True, db_index=True, max_length=64)


def _numbered_id() -> tuple[str, Any]:
    return "id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)


def _reference(name: str, row: str, related_name: str, *, db_index: bool = False) -> tuple[str, Any]:
    return name, fields.ForeignKeyField(
        f"gatewayd.{row}",
        source_field=f"{name}_id",
        db_index=db_index,
        db_constraint=True,
        to_field="id",
        related_name=related_name,
        on_delete=OnDelete.CASCADE,
    )


def _options(table: str, description: str, **more: Any) -> dict[str, Any]:
    return {"table": table, "app": "gatewayd", **more, "pk_attr": "id", "table_description": description}


class Migration(migrations.Migration):
    """Make the tables of documents."""

    dependencies = [("gatewayd", "0002_provisioning")]

    operations = [
        ops.CreateModel(
            name="FileRow",
            fields=[
                _named_id(),
                ("user_id", NameColumn(max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(max_length=765)),
                ("size", IntegerColumn()),
                ("digest", NameColumn(db_index=True, max_length=64)),
                ("checksum", NameColumn(max_length=255)),
                ("content_type", NameColumn(null=True, max_length=255)),
                ("status", NameColumn(db_index=True, max_length=16)),
                ("error", TextColumn(null=True, unique=False)),
                ("text_hash", NameColumn(null=True, db_index=True, max_length=64)),
                ("characters", IntegerColumn()),
                ("chunks", IntegerColumn()),
                ("pages", IntegerColumn(null=True)),
                ("data", JsonColumn(unique=False)),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn(db_index=True)),
            ],
            options=_options(
                "files",
                "One document, without its bytes, text and passages.",
                indexes=[Index(fields=["user_id", "created_at", "id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="FileTextRow",
            fields=[
                _numbered_id(),
                _reference("file", "FileRow", "texts"),
                ("staged", fields.BooleanField()),
                ("text", TextColumn(unique=False)),
            ],
            options=_options(
                "file_texts",
                "The extracted text of a file, and beside it the staged one that will take its place.",
                unique_together=(("file", "staged"),),
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="PassageRow",
            fields=[
                _numbered_id(),
                _reference("file", "FileRow", "passages"),
                ("staged", fields.BooleanField()),
                ("number", IntegerColumn()),
                ("start", IntegerColumn()),
                ("page", IntegerColumn(null=True)),
                ("heading", TextColumn(null=True, unique=False)),
                ("text", TextColumn(unique=False)),
            ],
            options=_options(
                "passages",
                "One chunk of a text, not to be found while it is staged.",
                indexes=[Index(fields=["file_id", "staged", "number"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="SpaceRow",
            fields=[
                _numbered_id(),
                ("name", NameColumn(unique=True, max_length=255)),
                ("dimension", IntegerColumn()),
                ("is_active", fields.BooleanField()),
            ],
            options=_options(
                "embedding_spaces", "One embedding model, whose vectors compare with each other."
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="VectorBatchRow",
            fields=[
                _numbered_id(),
                _reference("file", "FileRow", "vectors"),
                _reference("space", "SpaceRow", "vectors"),
                ("staged", fields.BooleanField()),
                ("ids", fields.BinaryField()),
                ("vectors", fields.BinaryField()),
            ],
            options=_options(
                "vector_batches",
                "The vectors of some passages of one file, with the ids of the passages.",
                indexes=[Index(fields=["file_id", "space_id"]), Index(fields=["space_id", "file_id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="JobRow",
            fields=[
                _numbered_id(),
                (
                    "file",
                    fields.OneToOneField(
                        "gatewayd.FileRow",
                        source_field="file_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="job",
                        on_delete=OnDelete.CASCADE,
                    ),
                ),
                ("attempts", IntegerColumn()),
                ("not_before", IntegerColumn(db_index=True)),
                ("lease_owner", NameColumn(max_length=64)),
                ("lease_until", IntegerColumn()),
                ("error", TextColumn(null=True, unique=False)),
                ("created_at", IntegerColumn()),
            ],
            options=_options(
                "ingest_jobs",
                "One file that waits for its passages, or is being worked on under a lease.",
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="CollectionRow",
            fields=[
                _named_id(),
                ("number", IntegerColumn(unique=True)),
                ("user_id", NameColumn(db_index=True, max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("name_key", NameColumn(db_index=True, max_length=765)),
                ("description", TextColumn(unique=False)),
                ("description_key", TextColumn(unique=False)),
                ("meta", JsonColumn(unique=False)),
                ("updated_at", IntegerColumn(db_index=True)),
                ("created_at", IntegerColumn()),
            ],
            options=_options("collections", "One collection, whose number names its lexical index."),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="LinkRow",
            fields=[
                _numbered_id(),
                _reference("collection", "CollectionRow", "links"),
                _reference("file", "FileRow", "links", db_index=True),
                ("user_id", NameColumn(max_length=64)),
                ("origin", TextColumn(unique=False)),
                ("path", TextColumn(unique=False)),
                ("place", NameColumn(max_length=64)),
                ("directory_id", NameColumn(null=True, max_length=64)),
                ("created_at", IntegerColumn()),
            ],
            options=_options(
                "collection_files",
                "One file in one collection, and its place there, digested to be looked up by.",
                unique_together=(("collection", "file"),),
                indexes=[Index(fields=["collection_id", "place"]), Index(fields=["collection_id", "id"])],
            ),
            bases=["Model"],
        ),
        ops.CreateModel(
            name="DirectoryRow",
            fields=[
                _named_id(),
                _reference("collection", "CollectionRow", "directories"),
                ("parent_id", NameColumn(null=True, max_length=64)),
                ("name", NameColumn(max_length=255)),
                ("user_id", NameColumn(max_length=64)),
                ("updated_at", IntegerColumn()),
                ("created_at", IntegerColumn()),
            ],
            options=_options(
                "collection_directories",
                "One directory of a collection.",
                indexes=[Index(fields=["collection_id", "parent_id"])],
            ),
            bases=["Model"],
        ),
    ]
