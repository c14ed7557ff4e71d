"""Restoring: all or nothing, into an empty or a used place, and never beside a daemon."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd import encryption
from gatewayd.backup import creation, restoration
from gatewayd.backup.creation import create_backup
from gatewayd.backup.manifest import BackupManifest
from gatewayd.backup.places import GatewayPlace
from gatewayd.backup.restoration import RestoredBackup, RestoreWishes, restore_backup
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.lock import JOURNAL, FileLock, lock_copying, lock_folder, refuse_interrupted
from gatewayd.storage.transfer.sqlite_files import table_sums
from tests.fakes.storage.gateway_place import KEY, PASSPHRASE, SECRET, add_file, add_user, make_place, rows
from tests.fakes.storage.postgres import Postgres


def silent(words: str) -> None:
    pass


def database(place: GatewayPlace) -> Path:
    assert place.location.path is not None
    return place.location.path


@pytest.fixture
def source(tmp_path: Path) -> GatewayPlace:
    place = make_place(tmp_path / "source")
    add_user(database(place), "ann")
    add_file(place, "file-aa", b"the bytes")
    return place


@pytest.fixture
def archive(source: GatewayPlace, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(encryption, "SCRYPT_COST", 2**4)
    return create_backup(source, PASSPHRASE, silent).path


def restore(place: GatewayPlace, archive: Path, **wishes: Any) -> RestoredBackup:
    with archive.open("rb") as file:
        return restore_backup(place, file, archive.name, RestoreWishes(**wishes), silent)


def facts(place: GatewayPlace) -> dict[str, Any]:
    """Return what a daemon would find."""
    files = {
        str(path.relative_to(place.data_dir)): path.read_bytes()
        for path in sorted((place.data_dir / "files").rglob("*"))
        if path.is_file()
    }
    users = rows(database(place), "SELECT id FROM users") if database(place).exists() else None
    key = place.data_dir / "secret-key"
    return {"files": files, "users": users, "key": key.read_text() if key.exists() else None}


ANN = {"files": {"files/aa/file-aa": b"the bytes"}, "users": [("ann",)], "key": f"{SECRET}\n"}


def test_a_new_place_gets_everything(source: GatewayPlace, archive: Path, tmp_path: Path) -> None:
    new = make_place(tmp_path / "new", is_migrated=False)
    done = restore(new, archive, passphrase=PASSPHRASE)
    assert facts(new) == ANN
    assert table_sums(database(new)) == table_sums(database(source))
    assert (done.former, done.pending) == (None, [])
    assert (done.beside / "plugins" / "loud.py").exists()
    assert (done.beside / "credentials" / "openai_api_keys").read_text() == KEY
    assert KEY in (done.beside / "settings" / "gatewayd.toml").read_text()
    assert all(path.stat().st_mode & 0o077 == 0 for path in new.data_dir.rglob("*") if path.is_file())
    assert not (new.data_dir / JOURNAL).exists()
    refuse_interrupted(new.data_dir)


def test_without_the_passphrase_the_key_that_is_there_stays(archive: Path, tmp_path: Path) -> None:
    new = make_place(tmp_path / "new", is_migrated=False)
    (new.data_dir / "secret-key").write_text("another key\n")
    done = restore(new, archive)
    assert facts(new) == {**ANN, "key": "another key\n"}
    assert KEY not in (done.beside / "settings" / "gatewayd.toml").read_text()
    with pytest.raises(GatewayError, match="another passphrase"):
        restore(new, archive, passphrase="not the passphrase", replace=True)
    assert facts(new) == {**ANN, "key": "another key\n"}


def test_killed_while_secrets_are_written_there_is_one(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = make_place(tmp_path / "used")
    (used.data_dir / "secret-key").write_text("of this gateway\n")
    real = restoration._write_secret

    def killed(path: Path, data: bytes) -> None:
        if "secret-key" in path.name:
            raise Killed
        real(path, data)

    monkeypatch.setattr(restoration, "_write_secret", killed)
    with pytest.raises(Killed):
        restore(used, archive, replace=True, passphrase=PASSPHRASE)
    monkeypatch.setattr(restoration, "_write_secret", real)
    restore(used, archive)
    assert facts(used) == {**ANN, "key": "of this gateway\n"}


def test_secrets_that_the_backup_had_not_are_moved_away(archive: Path, tmp_path: Path) -> None:
    used = make_place(tmp_path / "used")
    names = ("secret-key", "plugin-secret", "scim-token")
    used = replace(used, secret_files=frozenset(used.data_dir / name for name in names))
    for name in names[1:]:
        (used.data_dir / name).write_text("of another gateway")
    restore(used, archive, replace=True)
    assert (used.data_dir / "scim-token").exists()
    done = restore(used, archive, replace=True, passphrase=PASSPHRASE)
    assert facts(used) == ANN
    assert not any((used.data_dir / name).exists() for name in names[1:])
    assert done.former is not None
    assert (done.former / "scim-token").read_text() == "of another gateway"


def test_state_is_replaced_only_if_told_and_kept_beside(archive: Path, tmp_path: Path) -> None:
    used = make_place(tmp_path / "used")
    add_user(database(used), "bob")
    add_file(used, "file-bb", b"of bob")
    before = facts(used)
    with pytest.raises(GatewayError, match="add --replace") as refusal:
        restore(used, archive)
    assert refusal.value.kind is ErrorKind.CONFLICT
    assert facts(used) == before
    done = restore(used, archive, replace=True, passphrase=PASSPHRASE)
    assert facts(used) == ANN
    assert done.former is not None
    assert rows(done.former / "gatewayd.db", "SELECT id FROM users") == [("bob",)]
    assert (done.former / "files" / "bb" / "file-bb").read_bytes() == b"of bob"


def test_what_is_no_part_of_a_state_is_not_restored(source: GatewayPlace, tmp_path: Path) -> None:
    (source.data_dir / "backups").mkdir()
    (source.data_dir / "backups" / "old.tar").write_text("an earlier one")
    made = create_backup(replace(source, backup_dir=tmp_path / "usb"), "", silent)
    used = make_place(tmp_path / "used")
    used.backup_dir.mkdir()
    (used.backup_dir / "ours.tar").write_text("of this gateway")
    (used.data_dir / "lost+found").mkdir()
    restore(used, made.path, replace=True)
    refuse_interrupted(used.data_dir)
    assert [path.name for path in used.backup_dir.iterdir()] == ["ours.tar"]
    assert (used.data_dir / "lost+found").is_dir()


def test_a_running_daemon_or_backup_is_left_alone(archive: Path, tmp_path: Path) -> None:
    used = make_place(tmp_path / "used")
    before = facts(used)
    for lock in (lock_folder, lock_copying):
        with lock(used.data_dir), pytest.raises(GatewayError) as refusal:
            restore(used, archive, replace=True)
        assert refusal.value.kind is ErrorKind.CONFLICT
    # One whose state directory is another, but not its database.
    other = FileLock.of_database(database(used))
    other.acquire()
    with pytest.raises(GatewayError) as refusal:
        restore(used, archive, replace=True)
    other.release()
    assert refusal.value.kind is ErrorKind.CONFLICT
    assert facts(used) == before


def test_a_damaged_backup_and_a_full_disk_change_nothing(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = make_place(tmp_path / "used")
    before = facts(used)
    bad = tmp_path / "bad.tar"
    bad.write_bytes(archive.read_bytes().replace(b"the bytes", b"the bites"))
    with pytest.raises(GatewayError, match="damaged or missing"):
        restore(used, bad, replace=True)
    monkeypatch.setattr(creation, "SPARE_BYTES", 1 << 60)
    with pytest.raises(GatewayError, match="room for") as refusal:
        restore(used, archive, replace=True)
    assert refusal.value.kind is ErrorKind.UNAVAILABLE
    assert facts(used) == before
    assert not list(used.data_dir.glob(".restore*"))


@pytest.mark.parametrize("applied", [("9999_newer",), ("0001_initial", "0003_documents")])
def test_a_schema_of_a_newer_version_is_refused(
    applied: tuple[str, ...], archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BackupManifest.model_validate_json

    def newer(data: bytes) -> BackupManifest:
        return real(data).model_copy(update={"migrations": applied, "version": "9.0.0"})

    monkeypatch.setattr(BackupManifest, "model_validate_json", newer)
    with pytest.raises(GatewayError, match=r"version 9\.0\.0 made it.*install that version") as refusal:
        restore(make_place(tmp_path / "new", is_migrated=False), archive)
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


class Killed(BaseException):
    """The process ends here: no handler of ours runs."""


STEPS = ["_write_journal", "_lay_beside", "_swap_files", "_swap_database"]


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_is_the_old_state_or_begun_anew(
    step: str, is_before: bool, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = make_place(tmp_path / "used")
    add_user(database(used), "bob")
    old = facts(used)
    real: Callable[..., Any] = getattr(restoration._StateSwap, step)

    def killed(swap: Any, *arguments: Any) -> Any:
        if is_before:
            raise Killed
        found = real(swap, *arguments)
        if not hasattr(found, "__await__"):
            raise Killed
        return after(found)

    async def after(work: Any) -> None:
        await work
        raise Killed

    monkeypatch.setattr(restoration._StateSwap, step, killed)
    with pytest.raises(Killed):
        restore(used, archive, replace=True)
    monkeypatch.undo()
    monkeypatch.setattr(encryption, "SCRYPT_COST", 2**4)
    if not (used.data_dir / JOURNAL).exists():
        assert (step, is_before) == ("_write_journal", True)
        assert facts(used) == old
        return
    with pytest.raises(GatewayError, match="a restore was interrupted"):
        refuse_interrupted(used.data_dir)
    # The next one needs no --replace: it goes on with what was begun.
    restore(used, archive, passphrase=PASSPHRASE)
    assert facts(used) == ANN
    refuse_interrupted(used.data_dir)


@pytest.mark.real("PostgreSQL")
def test_a_backup_moves_between_the_engines(
    source: GatewayPlace, archive: Path, tmp_path: Path, postgres: Postgres
) -> None:
    location = parse(postgres.create_database())
    there = make_place(tmp_path / "there", is_migrated=False, location=location)
    restore(there, archive)
    back = create_backup(there, "", silent)
    assert back.manifest.engine == "postgresql"
    assert back.manifest.sums() == table_sums(database(source))
    new = make_place(tmp_path / "new", is_migrated=False)
    moved = tmp_path / "moved.tar"
    shutil.move(back.path, moved)
    restore(new, moved)
    assert table_sums(database(new)) == table_sums(database(source))
