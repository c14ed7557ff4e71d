"""The blob stores that the settings name."""

import os
from pathlib import Path

import pytest

from gatewayd.assembly.file_store import make_file_stores, open_file_stores
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.settings import ConfigurationError, Settings, load
from tests.fakes.documents.ingest_services import stream


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), **values})


async def test_the_state_directory_is_the_default_and_private(tmp_path: Path) -> None:
    stores = await open_file_stores(settings_for(tmp_path))
    assert isinstance(stores.documents, LocalBlobs)
    assert (stores.documents.is_shared, stores.batches.is_shared) == (False, False)
    await stores.documents.receive("a1", stream(b"x"), 0)
    await stores.batches.receive("a1", stream(b"x"), 0)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["batches/files/a1/a1", "files/a1/a1"]


async def test_a_directory_of_its_own_is_shared(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    stores = await open_file_stores(settings_for(tmp_path / "state", FILE_STORE=str(shared)))
    assert stores.documents.is_shared
    assert stores.batches.is_shared
    await stores.documents.receive("a1", stream(b"x"), 0)
    assert (shared / "files/a1/a1").is_file()


async def test_a_directory_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = settings_for(tmp_path, FILE_STORE=str(tmp_path / "absent"))
    with pytest.raises(GatewayError, match="it is not a directory") as refused:
        await open_file_stores(absent)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.NOT_CONFIGURED, "file_store")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(GatewayError, match="the user of the gateway may not write it"):
        await open_file_stores(settings_for(tmp_path, FILE_STORE=str(tmp_path)))


def test_a_bucket_holds_documents_and_batches(tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path,
        FILE_STORE="s3://bucket/prefix",
        FILE_STORE_ENDPOINT="http://127.0.0.1:1",
        FILE_STORE_REGION="eu-central-1",
        FILE_STORE_ACCESS_KEY="key",
        FILE_STORE_SECRET_KEY="secret",
    )
    stores = make_file_stores(settings)
    assert stores.bucket is not None
    assert stores.bucket.address.options()["secret_access_key"] == "secret"
    assert stores.documents.is_shared
    assert stores.copies is not None


@pytest.mark.parametrize("bad", ["files", "ftp://x", "s3://", "s3://b?x=1", "s3://key:secret@b/p"])
def test_what_is_no_file_store_is_refused(bad: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(None, {"FILE_STORE": bad})
    assert "FILE_STORE" in str(refused.value.problems[0])
