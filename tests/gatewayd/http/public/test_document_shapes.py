"""Tests for gatewayd.http.public.document_shapes."""

from gatewayd.catalog.records import Grant
from gatewayd.http.public.document_shapes import (
    Owners,
    show_collection,
    show_file,
    show_found,
    show_metadata,
    show_status,
)
from gatewayd.ingest.records import File, FileStatus, Space
from gatewayd.knowledge.records import Collection, Passage, StoredPassage
from gatewayd.knowledge.retrieval import Found
from tests.fakes.accounts import Accounts

META = {"name": "a.txt", "content_type": "text/plain", "size": 5, "file_hash": "v1", "data": {"k": "v"}}


def file(status: FileStatus = FileStatus.COMPLETED, error: str | None = None) -> File:
    return File(
        "f1",
        "u1",
        "a.txt",
        5,
        "digest",
        "v1",
        content_type="text/plain",
        status=status,
        error=error,
        text_hash="hash",
        data={"k": "v"},
        updated_at=2,
        created_at=1,
    )


def test_files() -> None:
    assert show_file(file()) == {
        "id": "f1",
        "user_id": "u1",
        "hash": "hash",
        "filename": "a.txt",
        "data": {"status": "completed"},
        "meta": META,
        "created_at": 1,
        "updated_at": 2,
    }
    assert show_file(file(), "text")["data"] == {"status": "completed", "content": "text"}
    assert show_file(file(FileStatus.STORED))["data"] == {}
    assert show_metadata(file()) == {
        "id": "f1",
        "hash": "hash",
        "meta": META,
        "created_at": 1,
        "updated_at": 2,
    }


def test_status() -> None:
    assert show_status(file()) == {"status": "completed"}
    assert show_status(file(FileStatus.PENDING)) == {"status": "pending"}
    assert show_status(file(FileStatus.STORED)) == {"status": "pending"}
    assert show_status(file(FileStatus.FAILED, "why")) == {"status": "failed", "error": "why"}


def test_collections() -> None:
    collection = Collection("c1", "u1", "C", "d", grants=(Grant("user", "*", "read"),), updated_at=2)
    assert show_collection(collection) == {
        "id": "c1",
        "user_id": "u1",
        "name": "C",
        "description": "d",
        "meta": None,
        "access_grants": [
            {
                "principal_type": "user",
                "principal_id": "*",
                "permission": "read",
                "resource_type": "knowledge",
                "resource_id": "c1",
            }
        ],
        "created_at": 0,
        "updated_at": 2,
    }


async def test_owners() -> None:
    accounts = Accounts()
    ann = await accounts.add_user("ann")
    shown = await Owners(accounts.users).shown([ann.id, "gone", ann.id])
    assert shown == {
        ann.id: {"id": ann.id, "name": "ann", "role": "user", "email": "ann@example.org"},
        "gone": None,
    }


def test_found() -> None:
    stored = StoredPassage(7, "f1", 0, "text", 100, page=2, heading="Top")
    passage = Passage(stored, "a.txt", "hash", "u1", 0.9)
    shown = show_found(Found([passage], space=Space("builtin:minilm:q8f-1", 384)))
    assert shown == {
        "ids": [["7"]],
        "documents": [["text"]],
        "metadatas": [
            [
                {
                    "file_id": "f1",
                    "name": "a.txt",
                    "source": "a.txt",
                    "hash": "hash",
                    "created_by": "u1",
                    "start_index": 100,
                    "page": 1,
                    "page_label": "2",
                    "heading": "Top",
                    "score": 0.9,
                    "embedding_config": {"engine": "builtin", "model": "minilm:q8f-1"},
                }
            ]
        ],
        "distances": [[0.9]],
    }
    assert show_found(Found([], ["cannot"])) == {
        "ids": [[]],
        "documents": [[]],
        "metadatas": [[]],
        "distances": [[]],
        "warnings": ["cannot"],
    }
