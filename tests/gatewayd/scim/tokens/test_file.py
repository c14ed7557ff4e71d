"""The file of SCIM tokens."""

import os
import stat
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.file import MAX_FILE_BYTES, find_written_at, read_tokens, write_tokens


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scim-token"


def test_what_is_written_is_read(path: Path) -> None:
    write_tokens(path, ["new", "old"])
    assert read_tokens(path) == ("new", "old")
    assert path.read_text() == "new\nold\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert find_written_at(path) == int(path.stat().st_mtime)


def test_nothing_is_left_beside_the_file(path: Path) -> None:
    write_tokens(path, ["one"])
    write_tokens(path, ["two"])
    assert [each.name for each in path.parent.iterdir()] == ["scim-token"]


def test_a_file_that_everybody_could_read_becomes_private(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o644)
    write_tokens(path, ["new"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "token"
    target.parent.mkdir()
    path.symlink_to(target)
    write_tokens(path, ["one"])
    assert path.is_symlink()
    assert target.read_text() == "one\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(path: Path) -> None:
    path.write_text("old")
    os.chown(path, 12345, 54321)
    write_tokens(path, ["new"])
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_dry_run_keeps_the_old_content_and_finds_problems(path: Path) -> None:
    write_tokens(path, ["old"])
    write_tokens(path, ["new"], dry_run=True)
    assert read_tokens(path) == ("old",)
    with pytest.raises(GatewayError):
        write_tokens(path.parent / "no" / "scim-token", ["new"], dry_run=True)


def test_an_absent_file_has_no_tokens(path: Path) -> None:
    assert read_tokens(path) == ()
    assert read_tokens(path / "below") == ()
    assert find_written_at(path) is None


@pytest.mark.parametrize(
    "content", [b"a b c", b"a\nb\nc\n", b"caf\xc3\xa9", b"\x00", b"\xff", b" " * (MAX_FILE_BYTES + 1)]
)
def test_a_malformed_file_is_refused_by_name(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(GatewayError, match="scim-token: expected at most 2 words") as caught:
        read_tokens(path)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"cannot read the SCIM token file .*: is a directory"):
        read_tokens(tmp_path)
    with pytest.raises(GatewayError, match=r"cannot write the SCIM token file .*: no such file or directory"):
        write_tokens(tmp_path / "no" / "scim-token", ["x"])
    with pytest.raises(GatewayError, match="cannot write the SCIM token file"):
        write_tokens(tmp_path, ["x"])
    assert list(tmp_path.iterdir()) == []
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for work in (lambda: write_tokens(loop, ["x"]), lambda: read_tokens(loop), lambda: find_written_at(loop)):
        with pytest.raises(GatewayError, match="loop"):
            work()
