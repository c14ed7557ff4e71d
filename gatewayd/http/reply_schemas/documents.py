"""Schemas of files, collections, directories and passages."""

from typing import Any

from gatewayd.http.reply_schemas.models import grant
from gatewayd.http.schemas import (
    BOOLEAN,
    INTEGER,
    INTEGER_OR_NULL,
    NUMBER,
    OBJECT,
    OBJECT_OR_NULL,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    TRUE,
    Schema,
    choice,
    extended,
    listed,
    mapped,
    record,
)

HASH = {"type": ["string", "null"], "description": "SHA-256 of the text, null without a text."}
PROGRESS = choice("pending", "completed", "failed")
ADDITION = choice("added", "unchanged", "failed")


def file_meta() -> dict[str, Any]:
    """Return the schema of the metadata of a file; `data` is from its client."""
    return record(
        {"pages": INTEGER, "blank_pages": INTEGER},
        name=TEXT,
        content_type=TEXT_OR_NULL,
        size=INTEGER,
        file_hash=TEXT_OR_NULL,
        data=OBJECT,
    )


def file() -> dict[str, Any]:
    """Return the schema of a file; `data.content` is its text, in replies that include it."""
    return record(
        id=TEXT,
        user_id=TEXT_OR_NULL,
        hash=HASH,
        filename=TEXT,
        data=record({"status": PROGRESS, "error": TEXT_OR_NULL, "content": TEXT}),
        meta=file_meta,
        created_at=SECONDS,
        updated_at=SECONDS,
    )


def uploaded_file() -> dict[str, Any]:
    """Return the schema of a new file; `status` is present unless the file is only stored."""
    return extended(file, {"status": TRUE})


def files() -> dict[str, Any]:
    """Return the schema of a page of files."""
    return record(items=listed(file), total=INTEGER)


def file_status() -> dict[str, Any]:
    """Return the schema of the state of a file; `error` is present for a failed one."""
    return record({"error": TEXT_OR_NULL}, status=PROGRESS)


def file_text() -> dict[str, Any]:
    """Return the schema of the text of a file."""
    return record(content=TEXT)


def done() -> dict[str, Any]:
    """Return the schema of a sentence about a completed change."""
    return record(message=TEXT)


def owner() -> dict[str, Any]:
    """Return the schema of an owner in a list; null for a deleted account."""
    known = record(id=TEXT, name=TEXT, role=TEXT, email=TEXT)
    return {**known, "type": ["object", "null"]}


def owned_file() -> dict[str, Any]:
    """Return the schema of a file with its owner."""
    return extended(file, user=owner)


def member_file() -> dict[str, Any]:
    """Return the schema of a file of a collection."""
    return extended(owned_file, directory_id=TEXT_OR_NULL)


def collection_grant() -> dict[str, Any]:
    """Return the schema of a grant of a collection."""
    return extended(grant, resource_type={"const": "knowledge"}, resource_id=TEXT)


def collection() -> dict[str, Any]:
    """Return the schema of a collection without its files."""
    return record(
        id=TEXT,
        user_id=TEXT,
        name=TEXT,
        description=TEXT,
        meta=OBJECT_OR_NULL,
        access_grants=listed(collection_grant),
        created_at=SECONDS,
        updated_at=SECONDS,
    )


def listed_collection() -> dict[str, Any]:
    """Return the schema of a collection in a list."""
    return extended(collection, user=owner, file_count=INTEGER, write_access=BOOLEAN)


def collections() -> dict[str, Any]:
    """Return the schema of a page of collections."""
    return record(items=listed(listed_collection), total=INTEGER)


def file_facts() -> dict[str, Any]:
    """Return the schema of a file within the reply about its collection."""
    return record(id=TEXT, hash=HASH, meta=file_meta, created_at=SECONDS, updated_at=SECONDS)


def whole_collection() -> dict[str, Any]:
    """Return the schema of a collection with its completed files; null for a large collection."""
    files_or_null = {"type": ["array", "null"], "items": file_facts}
    return extended(collection, files=files_or_null, file_count=INTEGER, write_access=BOOLEAN)


def batch() -> dict[str, Any]:
    """Return the schema of a collection after additions, with the result of each file."""
    result = record({"error": TEXT}, file_id=TEXT, status=ADDITION)
    warnings = record(message=TEXT, errors=listed(TEXT))
    return extended(whole_collection, {"warnings": warnings}, results=listed(result))


def directory() -> dict[str, Any]:
    """Return the schema of a directory of a collection."""
    return record(
        id=TEXT,
        knowledge_id=TEXT,
        parent_id=TEXT_OR_NULL,
        name=TEXT,
        user_id=TEXT,
        created_at=SECONDS,
        updated_at=SECONDS,
    )


def member_files() -> dict[str, Any]:
    """Return the schema of a page of the files of a collection, with their directories."""
    return record(
        items=listed(member_file), directories=listed(directory), breadcrumbs=listed(directory), total=INTEGER
    )


def tree_entry() -> dict[str, Any]:
    """Return the schema of a file of a compared tree."""
    return record(filename=TEXT, path=TEXT, checksum=TEXT)


def changed_entry() -> dict[str, Any]:
    """Return the schema of a file of a tree whose content differs in the collection."""
    return extended(tree_entry, stale_file_id=TEXT)


def tree_diff() -> dict[str, Any]:
    """Return the schema of the steps that synchronise a collection with a tree."""
    return record(
        added=listed(tree_entry),
        modified=listed(changed_entry),
        deleted=listed(record(file_id=TEXT, filename=TEXT)),
        mkdir=listed(TEXT),
        rmdir=listed(TEXT),
        unmodified_count=INTEGER,
        directory_map=mapped(TEXT),
    )


def passage_facts() -> dict[str, Any]:
    """Return the schema of the metadata of a passage; `page` counts from 0, `page_label` from 1."""
    optional = {
        "path": TEXT,
        "page": INTEGER,
        "page_label": TEXT,
        "heading": TEXT,
        "embedding_config": record(engine=TEXT, model=TEXT),
    }
    return record(
        optional,
        file_id=TEXT,
        name=TEXT,
        source=TEXT,
        hash=TEXT_OR_NULL,
        created_by=TEXT_OR_NULL,
        start_index=INTEGER,
        score=NUMBER,
    )


def passages() -> dict[str, Any]:
    """Return the schema of a search result: a list with one list in each member, best first."""
    return record(
        {"warnings": listed(TEXT)},
        ids=listed(listed(TEXT)),
        documents=listed(listed(TEXT)),
        metadatas=listed(listed(passage_facts)),
        distances=listed(listed(NUMBER)),
    )


def explained_passages() -> dict[str, Any]:
    """Return the schema of a search result with the scores and ranks of each passage."""
    number: Schema = {"type": ["number", "null"]}
    passage = record(
        id=TEXT,
        text=TEXT,
        file_id=TEXT,
        file=TEXT,
        path=TEXT,
        page=INTEGER_OR_NULL,
        heading=TEXT_OR_NULL,
        start=INTEGER,
        score=NUMBER,
        similarity=number,
        dense=number,
        dense_rank=INTEGER_OR_NULL,
        lexical=number,
        lexical_rank=INTEGER_OR_NULL,
    )
    return record(passages=listed(passage), warnings=listed(TEXT))


def processed_file() -> dict[str, Any]:
    """Return the schema of a file that was processed while its client waited."""
    return record(status=TRUE, collection_name=TEXT, filename=TEXT, content=TEXT)


def processed_text() -> dict[str, Any]:
    """Return the schema of a text that was stored as a file."""
    return extended(processed_file, file_id=TEXT)


def processed_batch() -> dict[str, Any]:
    """Return the schema of the results of a batch; `errors` are those of the failed files."""
    result = record({"error": TEXT}, file_id=TEXT, status=choice("completed", "failed"))
    return record(results=listed(result), errors=listed(result))
