from collections.abc import Callable
from pathlib import Path

from gatewayd.settings.origins import from_credential
from gatewayd.settings.result import SettingsReading

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
