"""Documents of declarative state as TOML."""

from pathlib import Path
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.state_document import join_path, read_state, write_state

SOURCE = 'class Tools:\n    """A "quoted" text.\\n"""\n\tx = 1\n'

DOCUMENTS: list[dict[str, Any]] = [
    {"format": 1, "users": {}},
    {"format": 1, "tools": {"t": {"content": SOURCE, "valves": {"a": [1, 2.5, True]}}}},
    {"format": 1, "tools": {"t": {"content": SOURCE.replace("\n", "\r\n")}}},
    {"format": 1, "tools": {"t": {"content": "\n\n"}, "u": {"content": "a\rb\n"}}},
    {"format": 1, "models": {"m": {"params": {"stop": None, "deep": [{"x": None}]}}}},
    {"format": 1, "models": {"m": {"params": {"json": "{}"}, "meta": {"file": "x"}}}},
    {"format": 1, "functions": {"f": {"valves": {"a": {"env": "HOME"}, "b": None, "c": 2**70}}}},
    {"format": 1, "tool_servers": {"s": {"spec": {"paths": {"/a": {"get": None}}}}}},
    {"format": 1, "users": {'a"b\\c@x.y': {"name": "\u6f22 \U0001f600 \x7f"}}},
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_is_read_as_it_was_written(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "state.toml"
    path.write_bytes(write_state(document).encode())
    found = read_state(str(path))
    assert (found.document, found.secrets) == (document, set())


def test_references_are_read_beside_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weather.py").write_bytes(b"x = 1\r\n")
    (tmp_path / "key").write_text("hidden\n")
    monkeypatch.setenv("A_KEY", "also hidden")
    path = tmp_path / "state.toml"
    path.write_text(
        '[users."a@b.c"]\npassword = { file = "key" }\n'
        '[tools.t]\ncontent = { file = "weather.py" }\nvalves = { k = { env = "A_KEY" }, n = 1 }\n'
        '[tool_servers.s]\nkey = { env = "A_KEY" }\nheaders = { X = { file = "key" }, Y = "z" }\n'
        '[models.m]\nparams = { file = "key" }\n'
    )
    found = read_state(str(path))
    assert found.document == {
        "users": {"a@b.c": {"password": "hidden"}},
        "tools": {"t": {"content": "x = 1\r\n", "valves": {"k": "also hidden", "n": 1}}},
        "tool_servers": {"s": {"key": "also hidden", "headers": {"X": "hidden", "Y": "z"}}},
        "models": {"m": {"params": {"file": "key"}}},
    }
    assert found.secrets == {
        ("users", "a@b.c", "password"),
        ("tools", "t", "valves.k"),
        ("tool_servers", "s", "key"),
        ("tool_servers", "s", "headers"),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tools.t]\ncontent = { file = 3 }", "tools.t.content: expected a text"),
        ("[tools.t]\ncontent = { file = 'bad' }", "tools.t.content: cannot read .*not UTF-8"),
        ("[tools.t]\nvalves.k = { env = '' }", "tools.t.valves.k.*: expected a text"),
        ("[users.'a@b.c']\npassword = { file = 'empty' }", "it is empty"),
        ("[users.'a@b.c']\nat = 10:00:00", "expected no date or time"),
    ],
)
def test_references_that_cannot_be_read(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff")
    (tmp_path / "empty").write_text("")
    path = tmp_path / "state.toml"
    path.write_text(text)
    with pytest.raises(CommandError, match=words) as caught:
        read_state(str(path))
    assert caught.value.exit_code == 1


def test_paths_are_dotted_keys() -> None:
    assert join_path("users", "a@b.c", "role") == 'users."a@b.c".role'
    assert join_path("groups", "dev-1", "members") == "groups.dev-1.members"
