"""Tests for gatewayd.descriptors."""

import resource
from pathlib import Path

import pytest

from gatewayd import descriptors
from gatewayd.descriptors import control_files, file_limit, has_spare_files, open_files


def test_the_kernel_counts_open_files() -> None:
    before = open_files()
    with open("/dev/null", "rb"):  # noqa: PTH123
        assert open_files() == before + 1 or not before


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
    assert has_spare_files() is spare
    assert control_files(limit) in (64, 2048)
