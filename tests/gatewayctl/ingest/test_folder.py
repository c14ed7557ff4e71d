"""What lies below a directory, and never elsewhere."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.ingest.folder import Folder, IrregularError, reason


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top" / "sub").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.txt").write_text("secret")
    (tmp_path / "top" / "sub" / "x.txt").write_text("plain")
    return tmp_path / "top"


@pytest.fixture
def folder(top: Path) -> Iterator[Folder]:
    with Folder(top) as opened:
        yield opened


def read(folder: Folder, *parts: str) -> bytes:
    with closing(folder.open_file(parts)) as file:
        return file.read()


def test_files_are_opened_and_directories_listed_by_name(folder: Folder, top: Path) -> None:
    assert read(folder, "sub", "x.txt") == b"plain"
    (top / "sub" / "a.txt").write_text("")
    (top / "sub" / "Z.txt").write_text("")
    with folder.listed(("sub",)) as entries:
        assert [entry.name for entry in entries] == ["Z.txt", "a.txt", "x.txt"]
        assert entries[2].stat().st_size == 5
    # Twice, as the directory itself stays open.
    for _ in range(2):
        with folder.listed(()) as entries:
            assert [entry.name for entry in entries] == ["sub"]


@pytest.mark.parametrize("parts", [("sub", "x.txt"), ("sub", "link")])
def test_a_link_that_takes_a_place_is_not_followed(folder: Folder, top: Path, parts: tuple[str, ...]) -> None:
    (top / "sub" / "link").symlink_to(top.parent / "secret" / "x.txt")
    if parts[-1] == "x.txt":
        (top / "sub").rename(top / "old")
        (top / "sub").symlink_to(top.parent / "secret")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        folder.open_file(parts)


def test_links_are_followed_when_that_is_wanted(top: Path) -> None:
    (top / "link").symlink_to(top.parent / "secret")
    with Folder(top, follow=True) as folder:
        assert read(folder, "link", "x.txt") == b"secret"


def test_what_is_no_regular_file_is_not_opened(folder: Folder, top: Path) -> None:
    os.mkfifo(top / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("pipe", "sub"):
        with pytest.raises(IrregularError):
            folder.open_file((name,))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_directory_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, word in (("absent", "no such file"), ("file", "not a directory")):
        with pytest.raises(CommandError, match=word) as caught:
            Folder(tmp_path / name)
        assert caught.value.exit_code == 2


def test_one_run_has_the_lock(folder: Folder, top: Path) -> None:
    assert folder.lock() is None
    with Folder(top) as other:
        with pytest.raises(CommandError, match="another run") as caught:
            other.lock()
        assert (caught.value.kind, caught.value.exit_code) == ("busy", 75)


def test_a_file_system_without_locks_is_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert "operation not supported; two runs may overlap" in (folder.lock() or "")


def test_reasons() -> None:
    assert reason(OSError(13, "Permission denied")) == "permission denied"
    assert reason(OSError(40, "Too many levels of symbolic links")) == "it is a link"
