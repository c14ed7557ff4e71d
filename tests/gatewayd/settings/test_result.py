from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings.layers import from_credential, from_environment, from_file
from gatewayd.settings.result import (
    MAX_FILE_BYTES,
    ConfigurationError,
    ConfigurationProblem,
    SettingsReading,
    did_you_mean,
    exposure_warning,
    problem_at,
    read_value,
)


def test_a_problem_begins_with_its_place() -> None:
    assert str(problem_at(from_file(Path("/f"), 3), "port", "is bad")) == "/f:3: is bad"
    assert str(problem_at(from_file(Path("/f"), None), "", "is bad")) == "/f: is bad"
    assert str(problem_at(from_environment("PORT"), "PORT", "is bad")) == "is bad"


def test_the_error_holds_all() -> None:
    error = ConfigurationError([ConfigurationProblem("a", "one"), ConfigurationProblem("b", "two")])
    assert isinstance(error, GatewayError)
    assert error.kind is ErrorKind.NOT_CONFIGURED
    assert error.message == "cannot use the configuration: one; two"
    assert [problem.key for problem in error.problems] == ["a", "b"]


def test_did_you_mean() -> None:
    assert did_you_mean("prot", {"port", "host"}) == ", did you mean port?"
    assert did_you_mean("something", {"port", "host"}) == ""


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


ORIGIN = from_credential("x")


def test_a_value_from_a_file(file: Callable[..., Path]) -> None:
    reading = SettingsReading()
    entry = reading.value_file("scim_token", file("token\n", "x"), ORIGIN, "x")
    assert entry is not None
    assert (entry.value, entry.key, entry.origin) == ("token", "x", ORIGIN)
    assert (reading.problems, reading.warnings) == ([], [])


def test_a_file_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    reading = SettingsReading()
    assert reading.value_file("scim_token", tmp_path / "no", ORIGIN, "x") is None
    assert [problem.sentence for problem in reading.problems] == [
        f"cannot read {tmp_path / 'no'} for scim_token: no such file or directory"
    ]


def test_an_open_file_is_warned_of_once(file: Callable[..., Path]) -> None:
    reading = SettingsReading()
    path = file("token", "x", mode=0o644)
    reading.value_file("scim_token", path, ORIGIN, "x")
    reading.warn_if_exposed(path)
    assert len(reading.warnings) == 1
