"""One process at a time, whatever becomes of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.lock import NAME, FileLock, lock_folder

HOLD = """
import sys
from pathlib import Path
from gatewayd.storage.engine.lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[4]


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.communicate()


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        with pytest.raises(GatewayError) as refused, lock_folder(tmp_path):
            raise AssertionError
        assert refused.value.kind is ErrorKind.CONFLICT
        assert refused.value.param == "data_dir"
        assert str(tmp_path) in refused.value.message
        assert f"process {process.pid}" in refused.value.message
    with lock_folder(tmp_path):
        pass


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with lock_folder(tmp_path):
            assert (tmp_path / NAME).read_text().split()[0] == str(os.getpid())


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with lock_folder(tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


def test_it_ends_with_the_block_and_says_who_held_it_last(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), lock_folder(tmp_path):
            raise ZeroDivisionError
    assert (tmp_path / NAME).read_text().split()[0] == str(os.getpid())


def test_a_shorter_holder_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("1" * 200)
    with lock_folder(tmp_path):
        assert (tmp_path / NAME).read_text().split()[0] == str(os.getpid())


def test_nobody_else_can_read_what_it_makes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with lock_folder(tmp_path / "a" / "state"):
            assert (tmp_path / "a" / "state").stat().st_mode & 0o777 == 0o700
            assert (tmp_path / "a" / "state" / NAME).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with (
        pytest.raises(GatewayError, match=r"cannot use the state directory .*/file: ") as refused,
        lock_folder(path),
    ):
        raise AssertionError
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED


def test_a_lock_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(GatewayError, match="is a directory") as refused, lock_folder(tmp_path):
        raise AssertionError
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED


def test_releasing_twice_is_no_error(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "x.lock", "the database x")
    lock.release()
    lock.acquire()
    lock.release()
    lock.release()
    lock.acquire()
    lock.release()
