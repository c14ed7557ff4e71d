"""Reading files, and noticing that they change."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayctl.ingest.folder import Folder
from gatewayctl.ingest.readers import CHANGED, GoneError, Reader, ReadError, Stream, place_of
from gatewayctl.ingest.records import Candidate, Version, shown
from gatewayctl.ingest.stop import Stop, StoppedError


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def reader(tmp_path: Path, stop: Stop) -> Iterator[Reader]:
    with Folder(tmp_path) as folder:
        yield Reader(folder, stop)


def read(reader: Reader, name: str = "a.txt") -> Version:
    return reader.read(Candidate((name,), 0), lambda amount: None)


def sent(reader: Reader, version: Version, size: int = 4) -> bytes:
    with closing(reader.stream(version, lambda amount: None)) as stream:
        return b"".join(iter(lambda: stream.read(size), b""))


def test_a_file_is_read_and_sent(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"all about tar")
    version = read(reader)
    assert (version.place, version.stamp.size) == ("a.txt", 13)
    assert version.checksum == hashlib.sha256(b"all about tar").hexdigest()
    assert sent(reader, version) == b"all about tar"
    with closing(reader.stream(version, lambda amount: None)) as stream:
        assert stream.read() == b"all about tar"
        assert stream.read() == b""


def test_progress_is_told_in_bytes(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"12345")
    amounts: list[int] = []
    version = reader.read(Candidate(("a.txt",), 5), amounts.append)
    with closing(reader.stream(version, amounts.append)) as stream:
        stream.read()
    assert sum(amounts) == 10


@pytest.mark.parametrize("content", [b"other content", b"more than there was before", b"less", b""])
def test_other_bytes_than_those_that_were_read_are_not_sent(
    reader: Reader, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"all about tar")
    version = read(reader)
    path.write_bytes(content)
    with pytest.raises(ReadError, match="it changed while it was read"):
        sent(reader, version)


def test_a_file_that_shrinks_while_it_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 10)
    with path.open("rb", buffering=0) as file:
        stream = Stream(file, 10, Stop())
        assert stream.read(4) == b"xxxx"
        os.truncate(path, 4)
        with pytest.raises(ReadError, match="changed"):
            stream.read(4)


def test_a_file_that_grows_while_it_is_sent_goes_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"xx")
    with path.open("rb", buffering=0) as file:
        stream = Stream(file, 2, Stop(), hashlib.sha256(b"xx").hexdigest())
        with path.open("ab") as more:
            more.write(b"yy")
        assert (stream.read(), stream.read()) == (b"xx", b"")


def test_a_file_that_changes_while_it_is_read(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"all about tar")

    def write(amount: int) -> None:
        with path.open("ab") as file:
            file.write(b"!")

    with pytest.raises(ReadError, match="it changed while it was read") as caught:
        reader.read(Candidate(("a.txt",), 13), write)
    assert str(caught.value) == CHANGED
    assert not caught.value.is_walk


def test_a_file_that_is_gone(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(GoneError):
        read(reader)
    (tmp_path / "a.txt").write_bytes(b"x")
    version = read(reader)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(ReadError, match="changed"):
        sent(reader, version)
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(ReadError, match="changed"):
        sent(reader, version)


def test_a_link_in_the_place_of_a_file_is_not_read(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("/etc/hostname")
    with pytest.raises(ReadError, match="cannot read the file: it is a link") as caught:
        read(reader)
    assert caught.value.is_walk


def test_a_stop_is_noticed_while_reading_and_sending(reader: Reader, stop: Stop, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    version = read(reader)
    stop.set()
    with pytest.raises(StoppedError):
        read(reader)
    with pytest.raises(StoppedError):
        sent(reader, version)


def test_a_file_that_stays_is_read_twice_only(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one")
    hashed: list[str] = []
    digest = Reader._digest
    monkeypatch.setattr(
        Reader,
        "_digest",
        lambda *given: hashed.append("read") or digest(*given),
    )
    versions = [read(reader) for _ in range(4)]
    assert len(hashed) == 2
    assert len(set(versions)) == 1
    # As long as before, so that only the times tell.
    path.write_bytes(b"two")
    assert read(reader).checksum == hashlib.sha256(b"two").hexdigest()


def test_places_are_spelt_in_one_way() -> None:
    assert place_of(("sub", "cafe\u0301.txt")) == "sub/caf\u00e9.txt"


@pytest.mark.parametrize("parts", [("a\nb",), ("a\x00",), ("sub\x7f", "a"), (os.fsdecode(b"\xff"),)])
def test_names_that_no_text_can_hold(parts: tuple[str, ...]) -> None:
    with pytest.raises(ReadError, match="control characters or is no UTF-8"):
        place_of(parts)


@pytest.mark.parametrize("parts", [("a" * 256,), ("\u6f22" * 85,) * 10, ("d",) * 4000])
def test_paths_that_are_too_long(parts: tuple[str, ...]) -> None:
    with pytest.raises(ReadError, match="its path is too long"):
        place_of(parts)


def test_names_are_shown() -> None:
    assert shown(os.fsdecode(b"caf\xe9.txt")) == r"caf\xe9.txt"
    assert shown("naïve") == "naïve"
