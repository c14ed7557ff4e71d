"""Archives: what goes in comes out, and nothing that was tampered with does."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.backup.archive import BLOCK, MANIFEST, ArchiveReader, ArchiveWriter, can_store, is_member_name
from gatewayd.backup.manifest import FORMAT, MANIFEST_BYTES, BackupManifest, TableEntry, decode_manifest
from gatewayd.errors import ErrorKind, GatewayError


def manifest(count: int, size: int, checksums: str, **changes: object) -> BackupManifest:
    facts = {
        "format": FORMAT,
        "version": "1.2.3",
        "created_at": "2026-11-24T02:30:00Z",
        "engine": "sqlite",
        "migrations": ("0001_initial",),
        "tables": {"users": TableEntry(rows=1, sum="0" * 64)},
        "files": count,
        "bytes": size,
        "checksums": checksums,
        "has_secrets": False,
    }
    return BackupManifest.model_validate({**facts, **changes})


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an archive of three files."""
    path = tmp_path / "a.tar"
    source = tmp_path / "source"
    source.write_bytes(b"12345" * 1000)
    with path.open("wb+") as file:
        writer = ArchiveWriter(file)
        assert writer.add_file("database.sqlite", source)
        writer.add_bytes("state/files/ab/xxab", b"")
        writer.add_bytes("settings/conf.d/10-ours.toml", b"a = 1\n")
        writer.finish(manifest)
    return path


def extract(path: Path, target: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return ArchiveReader(file, path.name).extract(target)


def test_what_goes_in_comes_out(archive: Path, tmp_path: Path) -> None:
    found = extract(archive, tmp_path / "new")
    assert list(found) == ["database.sqlite", "state/files/ab/xxab", "settings/conf.d/10-ours.toml"]
    assert (tmp_path / "new" / "database.sqlite").read_bytes() == b"12345" * 1000
    assert (tmp_path / "new" / "state/files/ab/xxab").stat().st_mode & 0o777 == 0o600


def test_other_programs_read_it(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        sums = tar.extractfile("SHA256SUMS")
        assert sums is not None
        assert b"  settings/conf.d/10-ours.toml\n" in sums.read()
    assert names[0] == MANIFEST
    assert names[-1] == "SHA256SUMS"


def test_a_file_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"long before")
    real = os.fstat
    seen = []

    def shrink(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if not seen:
            seen.append(1)
            os.truncate(source, 4)
        return found

    monkeypatch.setattr(os, "fstat", shrink)
    with (tmp_path / "a.tar").open("wb+") as file:
        writer = ArchiveWriter(file)
        assert writer.add_file("state/a", source)
        assert not writer.add_file("state/b", tmp_path / "gone")
        writer.finish(manifest)
    extract(tmp_path / "a.tar", tmp_path / "new")
    assert (tmp_path / "new" / "state" / "a").read_bytes() == b"long"


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("state/a", True),
        ("plugins/a b.py", True),
        ("database.sqlite", True),
        ("manifest.json", False),
        ("state/", False),
        ("state/../a", False),
        ("state/./a", False),
        ("state//a", False),
        ("/etc/passwd", False),
        ("../a", False),
        ("elsewhere/a", False),
        ("state/a\nb", False),
        ("state/a\x00b", False),
        ("state/" + "ä" * 200, False),
    ],
)
def test_names_lead_nowhere_else(name: str, is_good: bool) -> None:
    assert is_member_name(name) is is_good


def test_what_one_header_cannot_say_is_not_stored() -> None:
    assert can_store("state/" + "a" * 90, 8**11 + 1)
    assert can_store("state/" + "a/" * 60 + "b", 5)
    assert not can_store("state/" + "a" * 140, 5)
    assert not can_store("state/\udc80", 5)


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.GNU_FORMAT)[:BLOCK]


def inserted(member: bytes) -> Callable[[bytes], bytes]:
    """Put a member before the others."""
    at = BLOCK + MANIFEST_BYTES
    return lambda data: data[:at] + member + data[at:]


ATTACKS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a name that leads out": (inserted(header("state/../../x")), "name"),
    "an absolute name": (inserted(header("/etc/cron.d/x")), "name"),
    "a symbolic link": (inserted(header("state/x", kind=tarfile.SYMTYPE, link="/etc")), "no plain file"),
    "a hard link": (inserted(header("state/x", kind=tarfile.LNKTYPE, link="/etc/passwd")), "no plain file"),
    "a device": (inserted(header("state/x", kind=tarfile.CHRTYPE)), "no plain file"),
    "a directory": (inserted(header("state/x", kind=tarfile.DIRTYPE)), "no plain file"),
    "a sparse file": (inserted(header("state/x", kind=tarfile.GNUTYPE_SPARSE)), "no plain file"),
    "a long name": (inserted(header("x", 1 << 40, tarfile.GNUTYPE_LONGNAME)), "no plain file"),
    "an extended header": (inserted(header("x", 1 << 40, tarfile.XHDTYPE)), "no plain file"),
    "a bomb": (inserted(header("state/x", 1 << 50)), "larger than its manifest"),
    "a member more": (inserted(header("state/x")), "damaged or missing"),
    "a member twice": (inserted(header("database.sqlite", 0)), "name"),
    "a changed byte": (lambda data: data.replace(b"a = 1", b"a = 2"), "damaged or missing"),
    "changed checksums": (lambda data: data.replace(b"  state/files", b"  state/filez"), "checksums are"),
    "a cut": (lambda data: data[: len(data) // 2 + MANIFEST_BYTES // 2], "ends too early"),
    "no end": (lambda data: data[: BLOCK + MANIFEST_BYTES], "ends too early"),
    "nothing": (lambda data: b"", "ends too early"),
    "chance": (lambda data: os.urandom(4096), "no backup"),
    "zeroes": (lambda data: bytes(1 << 20), "no backup"),
    "no manifest yet": (
        lambda data: data[:BLOCK] + b" " * MANIFEST_BYTES + data[BLOCK + MANIFEST_BYTES :],
        "not completed",
    ),
    "a deep manifest": (
        lambda data: data[:BLOCK] + b"[" * MANIFEST_BYTES + data[BLOCK + MANIFEST_BYTES :],
        "manifest is damaged",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_tampered_with_is_refused(name: str, archive: Path, tmp_path: Path) -> None:
    change, words = ATTACKS[name]
    archive.write_bytes(change(archive.read_bytes()))
    target = tmp_path / "deep" / "new"
    with pytest.raises(GatewayError, match=words) as refusal:
        extract(archive, target)
    assert refusal.value.kind is ErrorKind.INVALID_REQUEST
    written = {path.name for path in tmp_path.rglob("*") if path.is_file() and path.is_relative_to(target)}
    assert "x" not in written or name == "a member more"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "moment", ["", "yesterday", "2026-11-24T02:30:00", "2026-13-24T02:30:00Z", "\x1b[2J"]
)
def test_a_time_that_is_none_is_damage(moment: str) -> None:
    data = manifest(1, 1, "0" * 64).model_copy(update={"created_at": moment}).encode()
    with pytest.raises(GatewayError, match="its manifest is damaged"):
        decode_manifest(data, "a.tar")


def test_a_backup_of_a_later_format_names_its_version() -> None:
    later = manifest(0, 0, "0" * 64, format=FORMAT + 1, version="9.0.0").encode()
    data = header(MANIFEST, MANIFEST_BYTES) + later
    with pytest.raises(GatewayError, match=r"version 9\.0\.0 made it") as refusal:
        ArchiveReader(io.BytesIO(data), "a.tar")
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED
