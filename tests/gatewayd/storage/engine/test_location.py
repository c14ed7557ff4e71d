"""Addresses of databases."""

import sys
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.location import parse, refuse_network_file_system, sqlite

MOUNTS = """\
proc /proc proc rw 0 0
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
server:/a /mnt/with\\040space cifs rw 0 0
tmpfs /over tmpfs rw 0 0
server:/b /over nfs rw 0 0
me@host:/x /mnt/ssh fuse.sshfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/gatewayd/gatewayd.db", "/var/lib/gatewayd/gatewayd.db"),
        ("sqlite:///state/gatewayd.db", "state/gatewayd.db"),
        ("sqlite:////a/with%20space%3F.db", "/a/with space?.db"),
    ],
)
def test_a_file(url: str, path: str) -> None:
    location = parse(url)
    assert location.is_sqlite
    assert location.path == Path(path)
    assert location == sqlite(Path(path))


def test_a_server() -> None:
    location = parse("postgresql://me%40x:p%2Fw@db.example.org:6543/name?sslmode=require", pool_size=7)
    assert not location.is_sqlite
    found = location.credentials
    assert [found[name] for name in ("host", "port", "user", "password", "database", "ssl")] == [
        "db.example.org",
        6543,
        "me@x",
        "p/w",
        "name",
        "require",
    ]


def test_the_pool_has_room_for_the_connection_that_holds_the_claim() -> None:
    assert parse("postgresql://db/name", pool_size=1).credentials["maxsize"] == 2


def test_a_server_at_its_defaults() -> None:
    found = parse("postgres://").credentials
    assert [found[name] for name in ("host", "port", "user", "password", "database")] == [
        "localhost",
        5432,
        "postgres",
        None,
        "gatewayd",
    ]
    assert "ssl" not in found


def test_a_server_on_a_unix_socket() -> None:
    found = parse("postgresql://me@/name?host=/run/postgresql&port=6000").credentials
    assert (found["host"], found["port"], found["user"]) == ("/run/postgresql", 6000, "me")


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("", "no scheme"),
        ("mysql://me:hush@db/name", "mysql"),
        ("sqlite://", "file"),
        ("sqlite:///", "file"),
        ("sqlite:///:memory:", "memory"),
        ("sqlite:////var/lib/gatewayd/", "file"),
        ("sqlite://relative/gatewayd.db", "sqlite:///"),
        ("sqlite:////a.db?mode=ro", "mode"),
        ("postgresql://me:hush@db:notaport/name", "port"),
        ("postgresql://me:hush@db:99999/name", "port"),
        ("postgresql://me:hush@db/name?port=x", "port"),
        ("postgresql://me:hush@[::1/name", "address"),
        ("postgresql://me:hush@db/name?sslmode=always", "sslmode"),
        ("postgresql://me:hush@db/name?pool=3&application=x", "application, pool"),
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_its_password(url: str, word: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parse(url)
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED
    assert refused.value.param == "database_url"
    assert word in refused.value.message
    assert "hush" not in refused.value.message


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/gatewayd.db", "nfs4"),
        ("/mnt/with space/deep/gatewayd.db", "cifs"),
        ("/over/gatewayd.db", "nfs"),
        ("/mnt/ssh/gatewayd.db", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_refused_by_name(path: str, kind: str) -> None:
    with pytest.raises(GatewayError, match="use a local disk, or PostgreSQL") as refused:
        refuse_network_file_system(Path(path), MOUNTS)
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED
    assert refused.value.param == "database_url"
    assert f"the {kind} file system" in refused.value.message


@pytest.mark.parametrize("path", ["/var/lib/gatewayd.db", "/home/local/x.db", "/homes/x.db"])
def test_a_local_file_system_is_accepted(path: str) -> None:
    refuse_network_file_system(Path(path), MOUNTS)


def test_without_mounts_nothing_is_refused() -> None:
    refuse_network_file_system(Path("/home/x.db"), "")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "remote" / "gatewayd.db")
    with pytest.raises(GatewayError, match="nfs"):
        refuse_network_file_system(tmp_path / "link.db", f"s:/x {tmp_path / 'remote'} nfs rw 0 0\n")


def test_without_its_driver_a_server_is_refused_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(GatewayError, match=r"pip install 'gatewayd\[postgres\]'") as refusal:
        parse("postgresql://db.example.org/name")
    assert refusal.value.param == "database_url"
