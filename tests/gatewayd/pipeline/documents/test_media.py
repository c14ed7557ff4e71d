"""Tests for gatewayd.pipeline.documents.media."""

from pathlib import Path

import pytest

from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.upload import UploadRules
from gatewayd.pipeline.documents.media import MediaFiles
from gatewayd.plugins.tool_results import ResultMedia
from tests.fakes.documents.site import DocumentServices
from tests.fakes.providers.models import make_actor

OWNER = make_actor("u1", Role.USER)


async def test_a_picture_becomes_a_file_of_the_user(tmp_path: Path) -> None:
    files = DocumentServices(tmp_path).files
    kept = await MediaFiles(files).keep(OWNER, ResultMedia("image", b"picture", "image/png"))
    assert (kept["type"], kept["name"], kept["content_type"]) == ("image", "image.png", "image/png")
    assert kept["url"] == f"/api/v1/files/{kept['id']}/content"
    file, content = await files.content(OWNER, kept["id"])
    assert content.path is not None
    assert (file.user_id, content.path.read_bytes()) == ("u1", b"picture")
    with pytest.raises(GatewayError):
        await files.get(make_actor("u2", Role.USER), kept["id"])


async def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    files = DocumentServices(tmp_path, UploadRules(4, 0, frozenset())).files
    with pytest.raises(GatewayError) as caught:
        await MediaFiles(files).keep(OWNER, ResultMedia("file", b"12345", "application/x-unheard"))
    assert caught.value.kind is ErrorKind.TOO_LARGE
