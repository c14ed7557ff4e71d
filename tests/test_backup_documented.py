"""The commands of gatewayd(8), Backup and restore, keep all that was acknowledged, while it is written to."""

import getpass
import grp
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import send
from tests.fakes.storage.postgres import Postgres
from tests.test_manpages import ROOT

PASSWORD = "correct horse battery"
AUTHS = "/api/v1/auths"
FEW = 8


def commands() -> list[str]:
    """Return the commands of the section as a shell reads them, in order."""
    page = (ROOT / "man" / "gatewayd.8").read_text()
    section = page.partition(".Ss Backup and restore\n")[2].partition("\n.Ss ")[0]
    blocks = re.findall(r"(?s)^\.Bd -literal[^\n]*\n(.*?)^\.Ed", section, re.MULTILINE)
    text = "".join(blocks).replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\e", "\\")
    return [part.rstrip() for part in re.split(r"(?m)^[#$] ", text) if part]


def run(command: str, places: dict[str, str], folder: Path, programs: str = "") -> None:
    """Run a command with the places of a test in place of those of a service."""
    for given, here in places.items():
        command = command.replace(given, here)
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, (command, done.stderr)


class Accounts:
    """Makes one account after the other and remembers those that were acknowledged."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
        self.headers = {"Authorization": f"Bearer {daemon.call('POST', f'{AUTHS}/signup', form)[1]['token']}"}
        self.made: list[str] = []
        self._is_over = threading.Event()
        self._changed = threading.Condition()

    @contextmanager
    def being_made(self) -> Iterator[None]:
        """Go on until the end of the block."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def wait_for(self, count: int) -> list[str]:
        """Wait until so many more are made and return all."""
        with self._changed:
            wanted = len(self.made) + count
            assert self._changed.wait_for(lambda: len(self.made) >= wanted, 60)
            return list(self.made)

    def _run(self) -> None:
        while not self._is_over.is_set():
            email = f"u{len(self.made)}@example.org"
            form = {"name": "U", "email": email, "password": PASSWORD}
            status, answer = self._daemon.call("POST", f"{AUTHS}/add", form, self.headers)
            assert status == 200, answer
            with self._changed:
                self.made.append(email)
                self._changed.notify_all()


def addresses(daemon: Daemon, headers: dict[str, str]) -> set[str]:
    """Return who has an account; the session of before is still good."""
    status, answer = daemon.call("GET", "/api/v1/users/all", None, headers)
    assert status == 200, answer
    return {user["email"] for user in answer["users"]}


def upload(daemon: Daemon, headers: dict[str, str]) -> str:
    """Add a file and return its id."""
    part = b'Content-Disposition: form-data; name="file"; filename="a.txt"'
    body = b"--b\r\n" + part + b"\r\n\r\nthe text\r\n--b--\r\n"
    sent = {**headers, "Content-Type": "multipart/form-data; boundary=b"}
    reply = send(daemon.base_url, "POST", "/api/v1/files/?process=false", body, sent)
    assert reply.status == 200, reply
    return str(reply.json["id"])


def places(state: Path, folder: Path) -> dict[str, str]:
    return {
        "/var/lib/gatewayd": str(state),
        "/var/backups/gatewayd": str(folder / "backup"),
        "/opt/gatewayd/bin/python3": sys.executable,
        "-o gatewayd -g gatewayd": f"-o {getpass.getuser()} -g {grp.getgrgid(os.getgid()).gr_name}",
    }


def test_a_backup_of_sqlite_has_what_was_acknowledged(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    mkdir, into, vacuum, archive, stop, into_again, *restore, start, _, _ = commands()
    assert stop.startswith("systemctl stop ")
    assert start == "systemctl start gatewayd"
    assert into == into_again == "cd /var/backups/gatewayd"
    backup = tmp_path / "backup"
    with running_daemon(first) as daemon:
        accounts = Accounts(daemon)
        with accounts.being_made():
            file_id = upload(daemon, accounts.headers)
            known = accounts.wait_for(FEW)
            run(mkdir, places(first, tmp_path), tmp_path)
            run(vacuum, places(first, tmp_path), backup)
            run(archive, places(first, tmp_path), backup)
            accounts.wait_for(1)
    second.mkdir()
    # What is there of another time must not be mixed with the backup.
    (second / "gatewayd.db-wal").write_bytes(b"old")
    for command in restore:
        run(command, places(second, tmp_path), backup)
    with running_daemon(second) as daemon:
        assert addresses(daemon, accounts.headers) >= set(known)
        path = f"/api/v1/files/{file_id}/content"
        assert daemon.call("GET", path, None, accounts.headers) == (200, "the text")
        assert daemon.run_ctl("database", "check").returncode == 0


def test_a_backup_of_sqlite_goes_nowhere_twice_and_comes_from_nothing_never(tmp_path: Path) -> None:
    vacuum = commands()[2]
    nowhere = tmp_path / "nowhere"
    with pytest.raises(AssertionError, match="unable to open database file"):
        run(vacuum, places(nowhere, tmp_path), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real("PostgreSQL")
def test_a_backup_of_postgresql_has_what_was_acknowledged(tmp_path: Path, postgres: Postgres) -> None:
    state = tmp_path / "state"
    address, empty = postgres.create_database(), postgres.create_database()
    *_, dump, restore = commands()
    programs = str(postgres.programs)
    with running_daemon(state, DATABASE_URL=address) as daemon:
        accounts = Accounts(daemon)
        with accounts.being_made():
            known = accounts.wait_for(FEW)
            run(dump, {"postgresql://USER@HOST/NAME": f"'{address}'"}, tmp_path, programs)
            accounts.wait_for(1)
    run(restore, {"postgresql://USER@HOST/NAME": f"'{empty}'"}, tmp_path, programs)
    with running_daemon(state, DATABASE_URL=empty) as daemon:
        assert addresses(daemon, accounts.headers) >= set(known)
