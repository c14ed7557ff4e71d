"""The file of SCIM tokens."""

from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.file import MAX_FILE_BYTES, read_tokens


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scim-token"


@pytest.mark.parametrize("content", ["new\nold\n", "new old", "\n new\r\nold"])
def test_the_words_of_a_file_are_read(path: Path, content: str) -> None:
    path.write_text(content)
    assert read_tokens(path) == ("new", "old")


def test_an_absent_file_has_no_tokens(path: Path) -> None:
    assert read_tokens(path) == ()
    path.write_text("")
    assert read_tokens(path) == ()
    assert read_tokens(path / "below") == ()


@pytest.mark.parametrize(
    "content", [b"a b c", b"a\nb\nc\n", b"caf\xc3\xa9", b"\x00", b"\xff", b" " * (MAX_FILE_BYTES + 1)]
)
def test_a_malformed_file_is_refused_by_name(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(GatewayError, match="scim-token: expected at most 2 words") as caught:
        read_tokens(path)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"cannot read the SCIM token file .*: is a directory"):
        read_tokens(tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(GatewayError, match="loop"):
        read_tokens(loop)
