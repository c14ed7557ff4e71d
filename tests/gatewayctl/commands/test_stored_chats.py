"""gatewayctl chat list, show, export, import and remove."""

import json
from pathlib import Path

import pytest

from gatewayctl.commands import stored_chats
from gatewayd.accounts.records import User
from gatewayd.chats.records import ChatChange
from tests.fakes.daemons.control_socket import Control, Ctl, Terminal


@pytest.fixture
async def ann(control: Control) -> User:
    return await control.accounts.add_user("ann")


async def test_lists(ctl: Ctl, control: Control, ann: User) -> None:
    bob = await control.accounts.add_user("bob")
    birds, bees = await control.live.chat(ann), await control.live.chat(bob, "Bees")
    old = await control.live.chat(ann, "Old")
    await control.live.house.store.change(old, ChatChange(archived=True), 9)
    listed = await ctl("chat", "list")
    assert (listed.code, listed.err) == (0, "")
    assert "Birds" in listed.out
    assert "Old" not in listed.out
    assert (await ctl("chat", "list", "--user", "ann@example.org", "-o", "name")).out == f"{birds}\n"
    assert (await ctl("chat", "list", "--archived", "-o", "name")).out == f"{old}\n"
    assert (await ctl("chat", "list", "--search", "bees", "-o", "name")).out == f"{bees}\n"
    [row] = json.loads((await ctl("chat", "list", "--search", "bees", "-o", "json")).out)
    assert (row["title"], row["user"], row["archived"]) == ("Bees", bob.email, False)
    few = await ctl("chat", "list", "--limit", "1")
    assert few.err == "1 of 2\n"
    assert (await ctl("chat", "list", "--user", "zoe@example.org")).code == 5
    assert (await ctl("chat", "list", "--limit", "0")).code == 2


async def test_show(ctl: Ctl, control: Control, ann: User) -> None:
    chat_id = await control.live.chat(ann)
    shown = await ctl("chat", "show", chat_id)
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0] == "Birds"
    assert lines[1].startswith(f"chat {chat_id} of ann@example.org, changed ")
    assert "  What stands in the water?" in lines
    assert lines[-1] == "  A heron."
    whole = json.loads((await ctl("chat", "show", chat_id, "--tree", "-o", "json")).out)
    assert [message["id"] for message in whole["messages"]] == ["q1", "a1"]
    assert (await ctl("chat", "show", chat_id, "-o", "name")).out == f"{chat_id}\n"
    assert (await ctl("chat", "show", "none")).code == 5


async def test_export_and_import(ctl: Ctl, control: Control, ann: User, tmp_path: Path) -> None:
    bob = await control.accounts.add_user("bob")
    birds = await control.live.chat(ann)
    await control.live.chat(ann, "Bees")
    await control.live.chat(bob, "Cats")
    [one] = json.loads((await ctl("chat", "export", birds)).out)
    assert (one["id"], one["title"]) == (birds, "Birds")
    assert one["chat"]["history"]["messages"]["a1"]["content"] == "A heron."
    lines = (await ctl("chat", "export", "--all", "--user", ann.id, "-o", "jsonl")).out.splitlines()
    assert {json.loads(line)["title"] for line in lines} == {"Birds", "Bees"}
    assert len((await ctl("chat", "export", "--all", "-o", "name")).out.split()) == 3
    path = tmp_path / "chats.json"
    told = await ctl("chat", "export", "--all", "--to", str(path))
    assert (told.out, told.code) == (f"exported to {path}\n", 0)
    assert len(json.loads(path.read_text())) == 3
    tried = await ctl("chat", "import", str(path), "--user", bob.email, "--dry-run")
    assert tried.out == "dry run: created 3 chats of bob@example.org\n"
    assert len((await ctl("chat", "list", "-o", "name")).out.split()) == 3
    made = json.loads((await ctl("chat", "import", str(path), "--user", bob.email, "-o", "json")).out)
    assert (made["outcome"], len(made["chats"])) == ("created", 3)
    assert len((await ctl("chat", "list", "--user", bob.email, "-o", "name")).out.split()) == 4
    piped = await ctl("chat", "import", "-", "--user", ann.email, "-o", "name", stdin="\n".join(lines))
    assert len(piped.out.split()) == 2


async def test_what_export_needs(ctl: Ctl, tmp_path: Path) -> None:
    assert (await ctl("chat", "export")).code == 2
    assert (await ctl("chat", "export", "x", "--all")).code == 2
    assert (await ctl("chat", "export", "x", "--user", "ann@example.org")).code == 2
    missing = await ctl("chat", "export", "none", "--to", str(tmp_path / "out"))
    assert (missing.code, missing.out, list(tmp_path.glob("*out*"))) == (5, "", [])
    empty = await ctl("chat", "export", "--all", "--to", str(tmp_path / "out"), "-o", "json")
    assert json.loads(empty.out) == {"file": str(tmp_path / "out")}
    assert json.loads((tmp_path / "out").read_text()) == []


async def test_imports_of_several_parts_are_checked_before_any_is_kept(
    ctl: Ctl, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_chats, "BATCH_BYTES", 1)
    good, bad = '{"chat": {"title": "x"}}', '{"chat": {"history": 3}}'
    refused = await ctl("chat", "import", "-", "--user", ann.email, stdin=f"{good}\n{good}\n{bad}")
    assert (refused.code, refused.out) == (1, "")
    assert "history" in refused.err
    assert (await ctl("chat", "list", "-o", "name")).out == ""
    made = await ctl("chat", "import", "-", "--user", ann.email, stdin=f"{good}\n{good}")
    assert made.out == "created 2 chats of ann@example.org\n"
    assert (await ctl("chat", "import", "-", "--user", "zoe@example.org", stdin=good)).code == 5
    assert (await ctl("chat", "import", "-", stdin=good)).code == 2


async def test_remove(ctl: Ctl, control: Control, ann: User) -> None:
    chat_id = await control.live.chat(ann)
    assert (await ctl("chat", "remove", chat_id)).code == 2
    assert (await ctl("chat", "remove", chat_id, stdin=Terminal("n\n"))).code == 1
    tried = await ctl("chat", "remove", chat_id, "--dry-run")
    assert tried.out == f"dry run: removed chat {chat_id}\n"
    removed = json.loads((await ctl("chat", "remove", chat_id, "--yes", "-o", "json")).out)
    assert (removed["outcome"], removed["title"]) == ("removed", "Birds")
    assert (await ctl("chat", "remove", chat_id, "--yes")).code == 5


async def test_a_model_may_have_the_name_of_a_verb(ctl: Ctl, control: Control) -> None:
    assert (await ctl("chat", "run", "alpha", "hi")).out == "hello\n"
    missing = await ctl("chat", "run", "list", "hi")
    assert (missing.code, control.source.asked[0]["model"]) == (5, "up-alpha")
