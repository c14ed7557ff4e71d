"""Tests for gatewayd.pipeline.runs.pictures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.records import BlobContent, File
from gatewayd.pipeline.runs.history import to_messages
from gatewayd.pipeline.runs.pictures import MAX_PICTURE_BYTES, MAX_PICTURES, StoredPictures
from tests.fakes.providers.models import make_actor

USER = make_actor("u", Role.USER)
FILE = File("f1", "u", "heron.png", 3, "d", "c", content_type="image/png")


class Files:
    """Files of one user, all with the same bytes."""

    def __init__(self, path: Path, file: File = FILE) -> None:
        self.path = path
        self.file = file
        path.write_bytes(b"abc")

    async def content(self, actor: Actor, file_id: str) -> tuple[File, BlobContent]:
        if file_id == "gone":
            raise not_found("file", file_id)
        if file_id == "down":
            raise GatewayError(ErrorKind.UNAVAILABLE, "no database")
        found = await LocalBlobs(self.path.parent.parent).find(self.path.name)
        assert found is not None
        return self.file, found


def asked(*ids: str, role: str = "user") -> dict[str, Any]:
    pictures = [{"type": "image", "id": each, "url": f"/api/v1/files/{each}/content"} for each in ids]
    return {"role": role, "content": "look", "files": pictures}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "ob"
    folder.mkdir()
    return Files(folder / "blob")


async def test_a_picture_of_a_file_is_sent_with_its_bytes(files: Files) -> None:
    warnings: list[str] = []
    filled = await StoredPictures(files).fill(USER, [asked("f1"), asked("f2", role="assistant")], warnings)
    question, answer = to_messages(filled)
    assert question["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}}
    assert (answer["content"], warnings) == ("look", [])
    assert asked("f1")["files"][0]["url"].startswith("/api/")


@pytest.mark.parametrize(
    "other",
    [
        {"type": "file"},
        {"url": "https://example.com/a.png"},
        {"url": "/api/v1/files/../x/content"},
        {"url": 3},
    ],
)
async def test_other_files_stay_as_they_are(files: Files, other: dict[str, Any]) -> None:
    message = asked("f1")
    message["files"] = [message["files"][0] | other, "text", None]
    assert list(await StoredPictures(files).fill(USER, [message], [])) == [message]


async def test_a_picture_that_cannot_be_sent_gives_a_warning(files: Files) -> None:
    warnings: list[str] = []
    await StoredPictures(files).fill(USER, [asked("gone")], warnings)
    for wrong in ({"content_type": "image/svg+xml"}, {"size": MAX_PICTURE_BYTES + 1}, {"content_type": None}):
        files.file = replace(FILE, **wrong)  # type: ignore[arg-type]
        filled = await StoredPictures(files).fill(USER, [asked("f1")], warnings)
        assert filled == [asked("f1")]
    assert ["gone" in warnings[0], *("heron.png" in sentence for sentence in warnings[1:])] == [True] * 4


async def test_the_newest_pictures_are_sent(files: Files) -> None:
    warnings: list[str] = []
    many = [asked(*(["f1"] * 10)), asked(*(["f1"] * 10))]
    filled = await StoredPictures(files).fill(USER, many, warnings)
    sent = [file["url"].startswith("data:") for message in filled for file in message["files"]]
    assert sent == [False] * (20 - MAX_PICTURES) + [True] * MAX_PICTURES
    assert warnings == [f"only the newest {MAX_PICTURES} pictures are sent to the model"]


async def test_a_failure_of_the_store_is_a_failure(files: Files) -> None:
    with pytest.raises(GatewayError, match="no database"):
        await StoredPictures(files).fill(USER, [asked("down")], [])
