"""Chats in files."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.events.portable import (
    BATCH_BYTES,
    BATCH_CHATS,
    as_array,
    as_lines,
    batches,
    read_chats,
    write_file,
)
from gatewayctl.failures import CommandError

ONE: dict[str, Any] = {"id": "1", "chat": {"title": "a\u2028b"}}
TWO: dict[str, Any] = {"id": "2", "chat": {"title": "ä"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps([ONE, TWO]), [ONE, TWO]),
        (json.dumps(ONE, indent=2), [ONE]),
        ("".join(as_lines([ONE, TWO])), [ONE, TWO]),
        ("\n" + "\n\n".join(as_lines([ONE, TWO])), [ONE, TWO]),
        ("".join(as_array([ONE, TWO])), [ONE, TWO]),
    ],
)
def test_every_form_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: list[Any]
) -> None:
    (tmp_path / "chats").write_text(text, encoding="utf-8")
    assert read_chats(str(tmp_path / "chats")) == expected
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert read_chats("-") == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is no chat in it"),
        (b"[]", "there is no chat in it"),
        (b"nonsense", "it is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"chat": {"temperature": NaN}}', "it is not JSON"),
        (b'{"chat": {}}\nnonsense', "it is not JSON"),
        (b'[{"chat": {}}, 3]', "entry 2 is no chat"),
        (b'{"title": "x"}', "entry 1 is no chat"),
        (b"\xff", "it is not UTF-8 text"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "chats").write_bytes(content)
    with pytest.raises(CommandError, match=reason) as caught:
        read_chats(str(tmp_path / "chats"))
    assert (caught.value.exit_code, caught.value.param) == (2, "FILE")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no such file"):
        read_chats(str(tmp_path / "absent"))


def test_large_imports_are_cut_into_batches() -> None:
    size = len(json.dumps(ONE, ensure_ascii=False).encode())
    assert list(batches([ONE, ONE, ONE], 2 * size)) == [[ONE, ONE], [ONE]]
    assert list(batches([ONE, TWO], 1)) == [[ONE], [TWO]]
    assert list(batches([], 9)) == []
    assert [len(each) for each in batches([ONE] * (BATCH_CHATS + 1), BATCH_BYTES)] == [BATCH_CHATS, 1]


def test_an_array_begins_with_the_first_chat() -> None:
    assert "".join(as_array([])) == "[]\n"
    assert json.loads("".join(as_array([ONE, TWO]))) == [ONE, TWO]

    def broken() -> Iterator[dict[str, Any]]:
        raise CommandError("not_found", "cannot find chat")
        yield ONE

    with pytest.raises(CommandError):
        next(as_array(broken()))


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    write_file(path, ["a", "b"])
    assert path.read_text() == "ab"
    assert path.stat().st_mode & 0o777 == 0o600

    def broken() -> Iterator[str]:
        yield "half"
        raise CommandError("upstream_failed", "cannot finish")

    with pytest.raises(CommandError, match="cannot finish"):
        write_file(path, broken())
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("ab", ["chats.json"])
    with pytest.raises(CommandError, match="no such file or directory") as caught:
        write_file(tmp_path / "absent" / "x", ["a"])
    assert caught.value.param == "--to"
