"""Completion of names and ids: what is offered, how much, and nothing without a daemon."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

import gatewayctl
from gatewayctl import completion
from gatewayctl.main import app
from gatewayctl.wire import routes
from tests.fakes.daemons.control_documents import processed
from tests.fakes.daemons.control_plugins import FILTER
from tests.fakes.daemons.control_socket import Control, Ctl
from tests.gatewayctl.test_manual import walk


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


NO_IDS = {
    # Words of somebody else, or of what is to be made.
    *((verb, name) for verb in ("user link", "group link") for name in ("external_id", "provider")),
    ("user link", "oauth_subject"),
    ("user unlink", "provider"),
    ("group unlink", "provider"),
    ("setup", "group"),
    ("user invite", "email"),
    ("model create", "model"),
    ("tool-server add", "server"),
    ("tool-server add", "functions"),
    ("group create", "name"),
    ("group ensure", "name"),
    ("collection create", "name"),
    ("key create", "name"),
    ("ingest", "origin"),
    # The last event that somebody saw.
    ("event follow", "since"),
    # Streams are not listed, and canonical ids are of models that no provider here may have.
    ("chat run", "resume"),
    ("model update", "family"),
    # They depend on the plugin that the command names.
    *((f"{noun} valves unset", "names") for noun in ("function", "tool")),
    *((f"{noun} valves set", "pairs") for noun in ("function", "tool")),
    # Files of this machine, which shells complete.
    ("chat import", "file"),
    *((f"user {verb}", "password_file") for verb in ("create", "ensure", "password")),
    *((f"{noun} valves set", "document") for noun in ("function", "tool")),
    ("setup", "password_file"),
    # A word of a list in its help.
    ("log level", "level"),
    ("chat export", "to"),
    ("user export", "to"),
    ("tool-server add", "spec"),
    ("tool-server add", "key_file"),
    ("scim check", "token_file"),
    ("scim check", "ca"),
    *((f"database {verb}", "config") for verb in ("copy", "migrate", "plan", "rollback", "status")),
    *((f"backup {verb}", "config") for verb in ("create", "list", "prune", "restore", "verify")),
    *((f"backup {verb}", "passphrase_file") for verb in ("create", "restore")),
    ("secret rotate", "config"),
    ("secret rotate-provider", "key_file"),
    # Only a document of the whole state lists providers.
    ("secret rotate-provider", "provider"),
    *(("import open-webui", name) for name in ("config", "database")),
    ("doctor", "file"),
    ("audit verify", "checkpoints"),
    *((f"state {verb}", "document") for verb in ("apply", "diff")),
    # A plan is only in the output of a diff.
    ("state apply", "plan"),
    # Words of a list in its page.
    ("state export", "table"),
    # The daemon lists no backups and no copies of its database: they are work without it.
    *((f"backup {verb}", "name") for verb in ("restore", "verify")),
    ("database rollback", "to"),
    # A provider that answered may be configured no longer.
    ("usage report", "provider"),
}
"""Parameters whose word could stand for something that there is, and does not."""

OTHER_WORDS = re.compile(
    r"DIR|PATH|TEXT|SECONDS|PATTERN|GLOB|SIZE|TIME|JSON|URL|QUESTION|PROMPT|NAME=VALUE"
    r"|NUMBER|N|DAYS?|DURATION|PERCENT|BUDGET"
)


def test_all_that_names_something_is_completed() -> None:
    left = {
        (path, parameter.name)
        for path, command in walk(typer.main.get_command(app))
        for parameter in command.params
        if parameter.metavar and not OTHER_WORDS.fullmatch(parameter.metavar)
        if parameter._custom_shell_complete is None
    }
    assert left == NO_IDS


def test_each_noun_is_asked_for_what_it_has() -> None:
    def rows(key: str, *found: dict[str, str]) -> Any:
        return SimpleNamespace(**{key: [SimpleNamespace(**one) for one in found]})

    answers = {
        routes.LIST_USERS: rows("users", {"email": "ada@example.org", "id": "u-1"}),
        routes.LIST_GROUPS: rows("groups", {"name": "staff", "id": "g-1"}),
        routes.LIST_INVITATIONS: rows("invitations", {"id": "i-1"}),
        routes.LIST_KEYS: rows("keys", {"id": "k-1"}),
        routes.LIST_CHATS: rows("chats", {"id": "c-1"}),
        routes.LIST_TASKS: rows("tasks", {"id": "t-1"}),
        routes.LIST_BATCHES: rows("batches", {"id": "b-1"}),
        routes.LIST_NODES: rows("nodes", {"name": "web-1", "id": "n-1"}),
        routes.LIST_CALLS: rows("calls", {"id": "q-1"}),
        routes.LIST_TOOL_SERVERS: rows("servers", {"id": "maps"}),
        routes.LIST_SETTINGS: rows("settings", {"name": "ENABLE_SIGNUP"}),
        routes.LIST_PERMISSIONS: rows("permissions", {"name": "chat.file_upload"}),
        routes.LIST_PLUGINS: rows("plugins", {"id": "loud"}),
    }
    client: Any = SimpleNamespace(call=lambda endpoint, *_, **__: answers[endpoint])
    for read, expected in (
        (completion.keys, [("k-1",)]),
        (completion.invitations, [("i-1",)]),
        (completion.chats, [("c-1",)]),
        (completion.tasks, [("t-1",)]),
        (completion.batches, [("b-1",)]),
        (completion.nodes, [("web-1", "n-1")]),
        (completion.calls, [("q-1",)]),
        (completion.tool_servers, [("maps",)]),
        (completion.BY_METAVAR["SETTING=VALUE"], [("ENABLE_SIGNUP=",)]),
        (completion.permissions, [("chat.file_upload",)]),
        (completion.holders, [("ada@example.org",), ("group:staff",)]),
        (completion.tools, [("loud",)]),
        (completion.filters, [("loud",)]),
        (completion.actions, [("loud",)]),
    ):
        assert list(read(client, "any")) == expected


async def offered(ctl: Ctl, words: str) -> list[str]:
    done = await asyncio.to_thread(complete, ctl.socket, words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.process
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
    assert await offered(ctl, "key list --user ada") == ["ada@example.org"]
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


@pytest.mark.process
def test_without_a_daemon_nothing_is_offered_and_nothing_said(tmp_path: Path) -> None:
    done = complete(tmp_path / "none.sock", "user show a")
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.process
def test_a_daemon_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        done = complete(tmp_path / "s", "user show a")
    assert (done.stdout.strip(), done.stderr) == ("", "")
