"""Each finding about files is provoked, and mended by the command that it names."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayd.doctor import state_folder
from gatewayd.doctor.findings import DoctorFinding


def run(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, timeout=30)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "a state"
    folder.mkdir(mode=0o700)
    for name in ("gatewayd.db", "secret-key"):
        (folder / name).write_text("x" * 64)
        (folder / name).chmod(0o600)
    return folder


def signing(state: Path) -> Iterator[DoctorFinding]:
    path = state / "secret-key"
    command = state_folder.file_command(path)
    return state_folder.check_signing_secret(path.read_text().strip(), str(path), command)


def disown(state: Path) -> None:
    os.chown(state / "gatewayd.db", 12345, 12345)


@pytest.mark.parametrize(
    ("code", "break_it", "check"),
    [
        ("state-missing", lambda state: run(f"rm -r '{state}'"), state_folder.check_folder),
        ("state-open", lambda state: state.chmod(0o755), state_folder.check_folder),
        ("file-open", lambda state: (state / "gatewayd.db").chmod(0o640), state_folder.check_folder),
        pytest.param(
            "state-owner",
            disown,
            state_folder.check_folder,
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
        (
            "secret-open",
            lambda state: (state / "secret-key").chmod(0o604),
            lambda state: state_folder.check_secrets([state / "secret-key"]),
        ),
        ("secret-short", lambda state: (state / "secret-key").write_text("short\n"), signing),
    ],
)
def test_a_finding_is_mended_by_its_command(
    state: Path,
    code: str,
    break_it: Callable[[Path], object],
    check: Callable[[Path], Iterator[DoctorFinding]],
) -> None:
    assert list(check(state)) == []
    break_it(state)
    [finding] = check(state)
    assert finding.code == code
    run(finding.command)
    assert not state.exists() or list(check(state)) == []
    assert state.exists()


@pytest.mark.parametrize(
    ("free", "codes"),
    [(100 << 20, ["disk-full"]), (4 << 30, ["disk-low"]), (6 << 30, []), (300 << 20, ["disk-low"])],
)
def test_free_space(tmp_path: Path, free: int, codes: list[str]) -> None:
    found = state_folder.check_disk(tmp_path, free=free, total=100 << 30)
    assert [each.code for each in found] == codes


def test_a_small_disk_that_is_nearly_empty_is_not_low(tmp_path: Path) -> None:
    assert list(state_folder.check_disk(tmp_path, free=2 << 30, total=3 << 30)) == []


def test_an_absent_folder_has_no_disk(tmp_path: Path) -> None:
    assert list(state_folder.check_disk(tmp_path / "none")) == []
