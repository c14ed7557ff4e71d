"""Tests for gatewayd.descriptors."""

import os
import resource
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayd import descriptors
from gatewayd.descriptors import (
    COUNT_COST_FACTOR,
    MAX_COUNT_AGE_SECONDS,
    FileCount,
    file_limit,
    has_spare_files,
    open_files,
    reserved_control_files,
)


class Listed(os.PathLike[str]):
    """The directory of a kernel before 6.2, which does not count."""

    def __init__(self, path: Path = descriptors.DESCRIPTORS) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)

    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(st_size=0)


@pytest.mark.parametrize("directory", [descriptors.DESCRIPTORS, Listed()], ids=["counted", "listed"])
def test_open_files_are_counted(monkeypatch: pytest.MonkeyPatch, directory: os.PathLike[str]) -> None:
    monkeypatch.setattr(descriptors, "DESCRIPTORS", directory)
    own = [os.dup(0)]
    before = open_files()
    assert before == sum(os.path.lexists(f"/proc/self/fd/{number}") for number in range(own[0] + 4096))
    own.append(os.dup(0))
    assert open_files() == before + 1
    for descriptor in own:
        os.close(descriptor)
    assert open_files() == before - 1


def test_without_a_descriptor_for_the_list_all_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "DESCRIPTORS", Listed())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The kernel gives the lowest number: all below it are taken.
    free = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        assert open_files() == free
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(free)


def test_what_else_the_kernel_says_is_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fd").touch()
    monkeypatch.setattr(descriptors, "DESCRIPTORS", Listed(tmp_path / "fd"))
    with pytest.raises(NotADirectoryError):
        open_files()


@pytest.mark.parametrize(("took", "kept"), [(0.001, COUNT_COST_FACTOR * 0.001), (0.5, MAX_COUNT_AGE_SECONDS)])
def test_counting_takes_a_part_of_the_time(monkeypatch: pytest.MonkeyPatch, took: float, kept: float) -> None:
    now, counts = [0.0], iter([10, 20])

    def open_files() -> int:
        now[0] += took
        return next(counts)

    monkeypatch.setattr(descriptors, "open_files", open_files)
    files = FileCount(lambda: now[0])
    assert files.now(4) == 10
    now[0] = kept - 0.0001
    assert [files.now(own) for own in (6, 1)] == [12, 7]
    now[0] = kept
    assert files.now(1) == 20


def test_without_proc_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(descriptors, "DESCRIPTORS", tmp_path / "fd")
    assert open_files() == 0


def test_the_limit_is_that_of_the_process() -> None:
    assert file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@pytest.mark.parametrize(
    ("limit", "count", "spare"),
    [(1000, 935, True), (1000, 936, False), (65_536, 63_487, True), (65_536, 63_488, False), (1000, 0, True)],
)
def test_the_control_socket_keeps_its_descriptors(
    monkeypatch: pytest.MonkeyPatch, limit: int, count: int, spare: bool
) -> None:
    monkeypatch.setattr(descriptors, "file_limit", lambda: limit)
    monkeypatch.setattr(descriptors, "open_files", lambda: count)
    monkeypatch.setattr(descriptors, "_COUNT", FileCount())
    assert has_spare_files() is spare
    assert reserved_control_files(limit) in (64, 2048)
