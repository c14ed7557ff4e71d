"""Completion of names and ids: what is offered, how much, and nothing without a daemon."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gatewayctl
from gatewayctl import completion
from tests.fakes.control import Control, Ctl
from tests.fakes.control_documents import processed
from tests.fakes.control_plugins import FILTER


def complete(socket: Path, words: str) -> subprocess.CompletedProcess[str]:
    """Return what the completion of bash says for the last of the words."""
    return subprocess.run(
        [sys.executable, "-m", "gatewayctl"],
        env={
            "_GATEWAYCTL_COMPLETE": "complete_bash",
            "COMP_WORDS": f"gatewayctl --socket {socket} {words}",
            "COMP_CWORD": str(len(words.split()) + (3 if words.endswith(" ") else 2)),
            "PYTHONPATH": str(Path(gatewayctl.__file__).parents[1]),
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


async def offered(ctl: Ctl, words: str) -> list[str]:
    done = await asyncio.to_thread(complete, ctl.socket, words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


async def test_what_there_is_is_offered(ctl: Ctl, control: Control, owner: None, tmp_path: Path) -> None:
    await ctl("user", "create", "--email", "ada@example.org", "--generate")
    await ctl("group", "create", "staff")
    await ctl("collection", "create", "handbook")
    (tmp_path / "loud.py").write_text(FILTER)
    await ctl("function", "install", str(tmp_path / "loud.py"))
    file = await processed(control, b"text", "a.txt")
    user = json.loads((await ctl("user", "show", "ada@example.org", "-o", "json")).out)
    model = (await ctl("model", "list", "-o", "name")).out.split()[0]
    assert await offered(ctl, "user show ada") == ["ada@example.org"]
    assert await offered(ctl, f"user show {user['id'][:-2]}") == [user["id"]]
    assert "staff" in await offered(ctl, "group show ")
    assert await offered(ctl, "collection show hand") == ["handbook"]
    assert await offered(ctl, f"file show {file.id[:-2]}") == [file.id]
    assert await offered(ctl, "function show l") == ["loud"]
    assert await offered(ctl, "tool show l") == []
    assert model in await offered(ctl, "chat run ")
    assert await offered(ctl, "user show nobody-of-this-name") == []


@pytest.mark.parametrize(
    "name", ["a;reboot", "$(reboot)", "`reboot`", "a b", "--yes", "=ls", "a\nb", "a|b", "~a"]
)
def test_a_name_that_a_shell_would_run_is_completed_by_its_id(name: str) -> None:
    root = SimpleNamespace(parent=None, params={"socket": None}, info_name="gatewayctl")
    context: Any = SimpleNamespace(parent=root, info_name="collection", find_root=lambda: root)
    complete = completion.completing(lambda _client, _noun: [(name, "c-1"), ("büro", "c-2")])
    assert complete(context, "") == ["büro"]
    assert complete(context, name[:1]) == []
    assert complete(context, "c") == ["c-1", "c-2"]


def test_no_more_than_a_hundred_are_offered_and_none_that_steers_a_terminal() -> None:
    ids = ["evil\x1b[2J", *(f"m{number}" for number in range(300))]
    asked = []

    def read(client: object, noun: str) -> completion.Rows:
        asked.append(noun)
        return [(one,) for one in ids]

    root = SimpleNamespace(parent=None, params={"socket": None}, info_name="gatewayctl")
    noun = SimpleNamespace(parent=root, info_name="model")
    context: Any = SimpleNamespace(parent=noun, info_name="show", find_root=lambda: root)
    assert completion.completing(read)(context, "") == ids[1:101]
    assert completion.completing(read)(context, "m299") == ["m299"]
    assert asked == ["model", "model"]


def test_without_a_daemon_nothing_is_offered_and_nothing_said(tmp_path: Path) -> None:
    done = complete(tmp_path / "none.sock", "user show a")
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_daemon_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        done = complete(tmp_path / "s", "user show a")
    assert (done.stdout.strip(), done.stderr) == ("", "")
