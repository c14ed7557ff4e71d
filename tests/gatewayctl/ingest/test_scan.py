"""Reading a whole directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayctl.ingest.folder import Folder
from gatewayctl.ingest.readers import Reader
from gatewayctl.ingest.rules import Rules
from gatewayctl.ingest.scan import TWICE, Scanner
from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.ingest.walk import Choice
from tests.fakes.http.progress import Gauge


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def scanner(tmp_path: Path, stop: Stop) -> Iterator[Scanner]:
    with Folder(tmp_path) as folder:
        yield Scanner(folder, Choice(Rules.of()), Reader(folder, stop), stop)


def test_every_file_has_its_place(scanner: Scanner, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("a.txt")
    gauge = Gauge()
    scan = scanner.scan(gauge)
    assert list(scan.versions) == ["a.txt", "b.txt", "sub/c.txt"]
    assert (scan.problems, scan.skipped, scan.is_whole) == ((), 1, True)
    assert gauge.stages == [("reading", 19, 19)]
    assert scanner.scan(Gauge()) == scan


def test_a_name_in_two_spellings_is_taken_once(scanner: Scanner, tmp_path: Path) -> None:
    for name in ("caf\u00e9.txt", "cafe\u0301.txt"):
        (tmp_path / name).write_text(name)
    scan = scanner.scan(Gauge())
    assert list(scan.versions) == ["caf\u00e9.txt"]
    assert [problem.error for problem in scan.problems] == [TWICE]
    assert scan.is_whole


def test_what_cannot_be_read_is_told(
    scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt", "c\n.txt"):
        (tmp_path / name).write_text(name)

    def open_file(folder: Folder, parts: tuple[str, ...]) -> None:
        raise FileNotFoundError if parts == ("a.txt",) else PermissionError(13, "Permission denied")

    monkeypatch.setattr(Folder, "open_file", open_file)
    scan = scanner.scan(Gauge())
    # One that went away in the meantime is no problem.
    assert [(each.path, each.error, each.is_walk) for each in scan.problems] == [
        ("b.txt", "cannot read the file: permission denied", True),
        ("c\n.txt", "cannot take the file: its name holds control characters or is no UTF-8", False),
    ]
    assert not scan.is_whole


def test_a_stop_is_noticed(scanner: Scanner, tmp_path: Path, stop: Stop) -> None:
    (tmp_path / "a.txt").write_text("x")
    stop.set()
    with pytest.raises(StoppedError):
        scanner.scan(Gauge())
