from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.settings.secret_files import MAX_FILE_BYTES, exposure_warning, read_value

File = Callable[..., Path]


def test_line_ends_at_the_end_are_dropped(file: File) -> None:
    assert read_value(file(" a b \r\n\n")) == " a b "


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "it is not UTF-8 text"), (b"x" * (MAX_FILE_BYTES + 1), "more than 65536 bytes")],
)
def test_files_that_hold_no_value(file: File, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_value(file(content))


def test_the_largest_file(file: File) -> None:
    assert len(read_value(file("x" * MAX_FILE_BYTES))) == MAX_FILE_BYTES


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a directory"):
        read_value(tmp_path)


@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o640, False), (0o644, True), (0o604, True)])
def test_exposure(file: File, mode: int, exposed: bool) -> None:
    assert bool(exposure_warning(file("x", mode=mode))) is exposed


def test_exposure_of_nothing(tmp_path: Path) -> None:
    assert (
        exposure_warning(tmp_path / "no")
        == f"cannot tell who may read {tmp_path / 'no'}: No such file or directory"
    )
