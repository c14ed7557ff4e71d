"""Backups that are made while the gateway is written to."""

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd import encryption, ids
from gatewayd.backup import creation, inventory, manifest
from gatewayd.backup.archive import ArchiveReader, ArchiveWriter
from gatewayd.backup.creation import CreatedBackup, create_backup, exclusive
from gatewayd.backup.file_links import FileLinks
from gatewayd.backup.inventory import find_backup, list_backups, prune_backups, verify_backup
from gatewayd.backup.places import GatewayPlace
from gatewayd.backup.retention import RetentionRule
from gatewayd.backup.secret_bundle import open_bundle, without_secrets
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.lock import JOURNAL, lock_copying
from gatewayd.storage.transfer import sqlite_files
from tests.fakes.storage.gateway_place import (
    KEY,
    PASSPHRASE,
    SECRET,
    add_file,
    add_user,
    make_place,
    rows,
    run,
)


def silent(words: str) -> None:
    pass


@pytest.fixture
def place(tmp_path: Path) -> GatewayPlace:
    return make_place(tmp_path)


def extracted(made: CreatedBackup, folder: Path) -> Path:
    with made.path.open("rb") as file:
        ArchiveReader(file, made.path.name).extract(folder)
    return folder


def verify(made: CreatedBackup, scratch: Path) -> None:
    with made.path.open("rb") as file:
        verify_backup(file, made.path.name, scratch)


def database(place: GatewayPlace) -> Path:
    assert place.location.path is not None
    return place.location.path


def test_it_has_every_write_from_before_it_and_writers_go_on(place: GatewayPlace, tmp_path: Path) -> None:
    is_over = threading.Event()
    done: list[str] = []

    def write() -> None:
        while not is_over.is_set():
            add_user(database(place), f"u{len(done)}")
            done.append(f"u{len(done)}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while len(done) < 20:
            is_over.wait(0.01)
        before = list(done)
        made = create_backup(place, "", silent)
        after = len(done)
    finally:
        is_over.set()
        thread.join()
    assert after > len(before)
    new = extracted(made, tmp_path / "new")
    kept = {row[0] for row in rows(new / "database.sqlite", "SELECT id FROM users")}
    assert kept >= set(before)
    assert made.manifest.tables["users"].rows == len(kept)
    verify(made, tmp_path)


def test_files_settings_and_plugins_are_in_it_and_secrets_are_not(
    place: GatewayPlace, tmp_path: Path
) -> None:
    add_file(place, "file-aa", b"the bytes")
    (place.data_dir / "batches" / "files" / "zz").mkdir(parents=True)
    (place.data_dir / "batches" / "files" / "zz" / "b-zz").write_text("batch")
    for derived in (
        "models/m.bin",
        "vectors/v.hnsw",
        "readers/r",
        "files/incoming/half",
        "a.part",
        "postgresql.before-1",
        "backups/gatewayd-old.tar",
        ".verify-1/half",
        "lost+found/inode",
    ):
        (place.data_dir / derived).parent.mkdir(parents=True, exist_ok=True)
        (place.data_dir / derived).write_text("derived")
    (place.data_dir / "plugin-data" / "incoming").mkdir(parents=True)
    (place.data_dir / "plugin-data" / "incoming" / "mail").write_text("of a plugin")
    (place.data_dir / "link").symlink_to("/etc/passwd")
    elsewhere = replace(
        place, backup_dir=tmp_path / "usb", other_backup_dirs=frozenset({place.data_dir / "backups"})
    )
    made = create_backup(elsewhere, "", silent)
    new = extracted(made, tmp_path / "new")
    found = {str(path.relative_to(new)) for path in new.rglob("*") if path.is_file()}
    assert found == {
        "database.sqlite",
        "state/files/aa/file-aa",
        "state/batches/files/zz/b-zz",
        "state/plugin-data/incoming/mail",
        "plugins/loud.py",
        "settings/gatewayd.toml",
    }
    assert made.manifest.files == 5
    assert made.manifest.left_out == ("state/link",)
    everything = made.path.read_bytes()
    assert SECRET.encode() not in everything
    assert KEY.encode() not in everything
    assert 'webui_name = "Ours"' in (new / "settings" / "gatewayd.toml").read_text()


def test_secrets_are_sealed_with_a_passphrase(
    place: GatewayPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "SCRYPT_COST", 2**4)
    made = create_backup(place, PASSPHRASE, silent)
    everything = made.path.read_bytes()
    assert SECRET.encode() not in everything
    assert KEY.encode() not in everything
    sealed = (extracted(made, tmp_path / "new") / "secrets.sealed").read_bytes()
    bundle = open_bundle(sealed, PASSPHRASE)
    assert bundle.files == {"secret-key": f"{SECRET}\n".encode()}
    assert bundle.settings == {"openai_api_keys": KEY}
    assert KEY.encode() in bundle.configuration["gatewayd.toml"]
    with pytest.raises(GatewayError) as refusal:
        open_bundle(sealed, PASSPHRASE.upper())
    assert refusal.value.kind is ErrorKind.FORBIDDEN
    with pytest.raises(GatewayError, match="fewer than 12 characters"):
        create_backup(place, "short", silent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('key = "s3cret-of-ours"', 'key = "(left out of the backup)"'),
        ('keys = ["a", "s3cret-of-ours"]', 'keys = ["a", "(left out of the backup)"]'),
        ('name = "x" # s3cret-of-ours', 'name = "x" # (left out of the backup)'),
        ('key = "s3cret\\u002Dof-ours"', None),
        ('[providers.x]\nheaders = { a = "s3cret\\u002Dof-ours" }', None),
        ("key = ", None),
    ],
)
def test_configuration_files_lose_their_secrets_or_are_left_out(text: str, expected: str | None) -> None:
    assert without_secrets(text, frozenset({"s3cret-of-ours"})) == expected


def test_a_file_that_is_deleted_meanwhile_is_in_it(
    place: GatewayPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = add_file(place, "file-aa", b"the bytes")
    real = sqlite_files.SqliteSnapshot.write

    def delete_then_write(snapshot: sqlite_files.SqliteSnapshot, target: Path) -> None:
        blob.unlink()
        real(snapshot, target)

    monkeypatch.setattr(sqlite_files.SqliteSnapshot, "write", delete_then_write)
    made = create_backup(place, "", silent)
    assert made.manifest.missing == ()
    assert (extracted(made, tmp_path / "new") / "state/files/aa/file-aa").read_bytes() == b"the bytes"
    assert [path.name for path in place.data_dir.glob(".backup-*")] == []


def test_a_file_that_comes_and_goes_between_two_looks_is_not_missed(
    place: GatewayPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FileLinks.update
    looks: list[int] = []

    def update(links: FileLinks) -> None:
        real(links)
        looks.append(1)
        if len(looks) == 1:
            # After the first look, before the state of the database is chosen; its bytes go at once.
            add_file(place, "file-bb").unlink()
        elif len(looks) == 2:
            rows_before = rows(database(place), "SELECT id FROM files")
            assert rows_before == [("file-bb",)]
            run(database(place), "DELETE FROM files")

    monkeypatch.setattr(FileLinks, "update", update)
    made = create_backup(place, "", silent)
    assert made.manifest.missing == ()
    assert made.manifest.tables["files"].rows == 0


def test_bytes_that_were_lost_before_are_named(place: GatewayPlace, tmp_path: Path) -> None:
    add_file(place, "file-cc").unlink()
    add_file(place, "chosen", blob="chosen.attempt")
    made = create_backup(place, "", silent)
    assert made.manifest.missing == ("file-cc",)
    verify(made, tmp_path)
    assert (extracted(made, tmp_path / "out") / "state/files/pt/chosen.attempt").read_bytes() == b"bytes"


def test_a_database_from_before_the_keys_has_the_ids_as_keys(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE files (id TEXT)")
        old.execute("INSERT INTO files VALUES ('file-cc')")
        old.commit()
    with sqlite_files.open_snapshot(path) as snapshot:
        assert snapshot.blob_keys() == {"file-cc"}


def test_more_lost_files_than_it_names_are_known_to_it(
    place: GatewayPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MAX_NOTES", 1)
    for number in range(4):
        add_file(place, f"file-c{number}").unlink()
    made = create_backup(place, "", silent)
    assert made.manifest.missing == ("file-c0", "and 3 more")
    verify(made, tmp_path)
    assert not made.manifest.is_missing_known([f"file-c{number}" for number in range(5)])


def test_a_killed_verification_leaves_no_remains(place: GatewayPlace) -> None:
    made = create_backup(place, "", silent)
    (place.data_dir / ".verify-killed").mkdir()
    with inventory._scratch(place.data_dir) as other:
        verify(made, place.data_dir)
        assert list(place.data_dir.glob(".verify-*")) == [other]


def test_a_backup_of_a_clock_that_was_ahead_takes_no_place(
    place: GatewayPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = ids.now()
    monkeypatch.setattr(ids, "now", lambda: now + 10 * 366 * 86400)
    create_backup(place, "", silent)
    monkeypatch.undo()
    create_backup(place, "", silent)
    assert all(kept for _, kept in prune_backups(place.backup_dir, RetentionRule(last=1), dry_run=False))


def fail_with(code: int) -> Callable[..., bool]:
    def fail(*_: object) -> bool:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_full_disk_leaves_nothing(place: GatewayPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArchiveWriter, "add_file", fail_with(errno.ENOSPC))
    with pytest.raises(GatewayError, match="no space left on device") as refusal:
        create_backup(place, "", silent)
    assert refusal.value.kind is ErrorKind.UNAVAILABLE
    assert [path.name for path in place.backup_dir.iterdir()] == ["backup.lock"]
    monkeypatch.undo()
    monkeypatch.setattr(creation, "SPARE_BYTES", 1 << 60)
    with pytest.raises(GatewayError, match="are needed"):
        create_backup(place, "", silent)


def test_a_half_restored_state_gets_no_backup(place: GatewayPlace) -> None:
    (place.data_dir / JOURNAL).write_text("{}")
    with pytest.raises(GatewayError, match="a restore was interrupted"):
        create_backup(place, "", silent)
    assert list_backups(place.backup_dir) == []


def test_two_at_once_are_refused_and_remains_are_removed(place: GatewayPlace, tmp_path: Path) -> None:
    with exclusive(place.backup_dir):
        with pytest.raises(GatewayError) as refusal:
            create_backup(place, "", silent)
        assert refusal.value.kind is ErrorKind.CONFLICT
    # The links of one are not remains for another, whatever their directories.
    elsewhere = replace(place, backup_dir=tmp_path / "elsewhere")
    with lock_copying(place.data_dir), pytest.raises(GatewayError) as refusal:
        create_backup(elsewhere, "", silent)
    assert refusal.value.kind is ErrorKind.CONFLICT
    (place.backup_dir / "gatewayd-1.tar.part").write_text("of a killed one")
    (place.backup_dir / "film.part1.rar").write_text("of somebody else")
    (place.data_dir / ".backup-1").mkdir()
    create_backup(place, "", silent)
    assert [path.name for path in place.backup_dir.glob("*.part*")] == ["film.part1.rar"]
    assert not list(place.data_dir.glob(".backup-*"))


def test_backups_are_listed_found_and_pruned(place: GatewayPlace) -> None:
    first = create_backup(place, "", silent)
    second = create_backup(place, "", silent)
    broken = place.backup_dir / "broken.tar"
    broken.write_bytes(first.path.read_bytes()[:1000])
    os.utime(broken, (1, 1))
    assert [each.path for each in list_backups(place.backup_dir)] == [second.path, first.path, broken]
    assert find_backup(place.backup_dir, "latest") == second.path
    assert find_backup(place.backup_dir, first.path.stem) == first.path
    with pytest.raises(GatewayError, match="cannot find"):
        find_backup(place.backup_dir, "none")
    with pytest.raises(GatewayError, match="how many are kept"):
        prune_backups(place.backup_dir, RetentionRule(), dry_run=False)
    prune_backups(place.backup_dir, RetentionRule(last=1), dry_run=True)
    assert first.path.exists()
    decided = prune_backups(place.backup_dir, RetentionRule(last=1), dry_run=False)
    assert [(each.path.name, kept) for each, kept in decided] == [
        (second.path.name, True),
        (first.path.name, False),
        ("broken.tar", True),
    ]
    assert not first.path.exists()
    assert broken.exists()
