"""What was written survives a power failure."""

import os
from pathlib import Path

import pytest

from gatewayd.fsync import sync_to_disk


def test_files_and_folders_are_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    file = tmp_path / "file"
    file.touch()
    opened = len(list(Path("/proc/self/fd").iterdir()))
    sync_to_disk(file)
    sync_to_disk(tmp_path)
    assert flushed == [file.stat().st_ino, tmp_path.stat().st_ino]
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_a_disk_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="the disk is gone"):
        sync_to_disk(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_to_disk(tmp_path / "absent")
