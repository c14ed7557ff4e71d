"""The directory of uploads: regular files in it, and nothing else."""

import os
from pathlib import Path

import pytest

from gatewayd.errors import GatewayError
from gatewayd.offline.imports.uploads import open_uploads, read_bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "uploads"
    made.mkdir()
    (made / "plain").write_bytes(b"x" * 3_000_000)
    (tmp_path / "secret").write_bytes(b"secret")
    (made / "link").symlink_to(tmp_path / "secret")
    (made / "folder").mkdir()
    os.mkfifo(made / "pipe")
    return made


async def test_the_first_name_that_is_there_is_read(folder: Path) -> None:
    with open_uploads(folder) as uploads:
        descriptor = uploads.open(["gone", "plain", "link"])
        assert sum([len(each) async for each in read_bytes(descriptor)]) == 3_000_000
        os.close(descriptor)


@pytest.mark.parametrize("names", [["link"], ["folder"], ["pipe"], ["gone"], [], ["x" * 300]])
def test_what_is_no_file_of_the_directory_is_refused(folder: Path, names: list[str]) -> None:
    with open_uploads(folder) as uploads, pytest.raises(GatewayError, match="upload"):
        uploads.open(names)


async def test_bytes_that_cannot_be_read_are_an_error(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    with pytest.raises(GatewayError, match="cannot read the upload: is a directory"):
        [each async for each in read_bytes(descriptor)]
    os.close(descriptor)


@pytest.mark.parametrize("name", ["none", "uploads/plain"])
def test_a_directory_that_is_none_is_an_error(folder: Path, name: str) -> None:
    with pytest.raises(GatewayError, match="cannot open the uploads"), open_uploads(folder.parent / name):
        pass
