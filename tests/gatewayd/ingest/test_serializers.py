"""Tests for gatewayd.ingest.serializers."""

from dataclasses import replace

from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.serializers import file_warning, render_file, render_metadata, render_status

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
    assert render_file(file()) == {
        "id": "f1",
        "user_id": "u1",
        "hash": "hash",
        "filename": "a.txt",
        "data": {"status": "completed"},
        "meta": META,
        "created_at": 1,
        "updated_at": 2,
    }
    assert render_file(file(), "text")["data"] == {"status": "completed", "content": "text"}
    assert render_file(file(FileStatus.STORED))["data"] == {}
    assert render_metadata(file()) == {
        "id": "f1",
        "hash": "hash",
        "meta": META,
        "created_at": 1,
        "updated_at": 2,
    }


def test_pages_without_text_are_told() -> None:
    scanned = replace(file(), pages=10, blank_pages=9)
    assert render_file(scanned)["meta"] == {**META, "pages": 10, "blank_pages": 9}
    assert file_warning(scanned) == "9 of its 10 pages have no text (scanned?)"
    whole = replace(file(), pages=10)
    assert (render_file(whole)["meta"], file_warning(whole)) == (META, None)


def test_status() -> None:
    assert render_status(file()) == {"status": "completed"}
    assert render_status(file(FileStatus.PENDING)) == {"status": "pending"}
    assert render_status(file(FileStatus.STORED)) == {"status": "pending"}
    assert render_status(file(FileStatus.FAILED, "why")) == {"status": "failed", "error": "why"}
