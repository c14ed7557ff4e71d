"""Copies of bytes on disk: lent for a block, or kept for a while."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest import blob_copies as module
from gatewayd.ingest.blob_copies import BlobCopies


async def pieces(*given: bytes) -> AsyncGenerator[bytes, None]:
    for piece in given:
        yield piece


async def test_a_lent_copy_is_deleted_after_the_block(tmp_path: Path) -> None:
    copies = BlobCopies(tmp_path / "copies")
    async with copies.lend(pieces(b"te", b"xt"), "") as path:
        assert path.read_text() == "text"
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


async def test_kept_copies_are_made_once_and_few_remain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_COPIES", 2)
    copies = BlobCopies(tmp_path / "copies")
    first = await copies.keep("a", pieces(b"a"), "")
    assert await copies.keep("a", pieces(b"not read"), "") == first
    second = await copies.keep("b", pieces(b"b"), "")
    third = await copies.keep("c", pieces(b"c"), "")
    assert [path.exists() for path in (first, second, third)] == [False, True, True]
    second.unlink()
    assert (await copies.keep("b", pieces(b"again"), "")).read_text() == "again"
    await copies.clear()
    assert not third.exists()


async def test_a_disk_that_refuses_is_told_and_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("a file")
    copies = BlobCopies(tmp_path / "copies")
    with pytest.raises(GatewayError, match="cannot copy the bytes of the file: ") as refused:
        await copies.keep("a", pieces(b"a"), "")
    assert refused.value.kind is ErrorKind.UNAVAILABLE
