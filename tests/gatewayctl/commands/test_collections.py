"""gatewayctl collection."""

import json

import pytest

from gatewayctl.client import ControlClient
from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.collections import CheckReport, Passage, Reindex, SearchAnswer
from tests.fakes.daemons.control_documents import processed
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_create_show_list(ctl: Ctl, owner: None) -> None:
    made = await ctl("collection", "create", "handbook", "--description", "rules", "--reader", "*")
    assert made.out == "created collection handbook\n"
    shown = json.loads((await ctl("collection", "show", "handbook", "-o", "json")).out)
    assert (shown["name"], shown["description"], shown["readers"]) == ("handbook", "rules", ["*"])
    assert (await ctl("collection", "show", shown["id"], "-o", "name")).out == "handbook\n"
    await ctl("collection", "create", "other")
    assert (await ctl("collection", "list", "--query", "hand", "-o", "name")).out == "handbook\n"
    few = await ctl("collection", "list", "--limit", "1")
    assert few.err == "1 of 2\n"
    dry = await ctl("collection", "create", "third", "--dry-run")
    assert dry.out == "dry run: created collection third\n"
    assert (await ctl("collection", "show", "third")).code == 5
    assert (await ctl("collection", "create", "x", "--user", "nobody@example.org")).code == 5


async def test_what_a_removed_user_left(ctl: Ctl, owner: None) -> None:
    assert (await ctl("user", "create", "--email", "ann@example.org", "--generate")).code == 0
    await ctl("collection", "create", "left", "--user", "ann@example.org")
    await ctl("collection", "create", "kept")
    assert (await ctl("user", "remove", "ann@example.org", "--yes")).code == 0
    assert (await ctl("collection", "list", "--orphaned", "-o", "name")).out == "left\n"
    given = await ctl("collection", "give", "left", "kept", "--to", "boss@example.org")
    assert given.out == "changed collection left\nunchanged collection kept\n"
    assert (await ctl("collection", "list", "--orphaned", "-o", "name")).out == ""
    assert (await ctl("collection", "give", "left", "--to", "zoe@example.org")).code == 5


async def test_a_long_description_does_not_widen_a_list(ctl: Ctl, owner: None) -> None:
    await ctl("collection", "create", "d", "--description", "word " * 1000)
    listed = (await ctl("collection", "list")).out
    assert max(len(line) for line in listed.splitlines()) < 300
    assert "word ..." in listed
    assert (await ctl("collection", "show", "d")).out.count("word") == 1000


async def test_change(ctl: Ctl, owner: None) -> None:
    await ctl("collection", "create", "c", "--reader", "*")
    assert (await ctl("collection", "change", "c")).code == 2
    assert (await ctl("collection", "change", "c", "--private", "--reader", "*")).code == 2
    assert (await ctl("collection", "change", "c", "--name", "d")).out == "changed collection d\n"
    assert (await ctl("collection", "change", "d", "--private")).out == "changed collection d\n"
    assert json.loads((await ctl("collection", "show", "d", "-o", "json")).out)["readers"] == []
    assert (await ctl("collection", "change", "d", "--description", "")).out == "unchanged collection d\n"


async def test_add_files_and_remove(ctl: Ctl, control: Control, owner: None) -> None:
    await ctl("collection", "create", "c")
    first, second = await processed(control, b"one"), await processed(control, b"two", "b.txt")
    dry = await ctl("collection", "add", "c", first.id, "--dry-run")
    assert (dry.code, dry.err) == (0, "dry run: nothing was changed\n")
    added = await ctl("collection", "add", "c", first.id, second.id, "--wait", "-o", "json")
    assert [row["outcome"] for row in json.loads(added.out)] == ["added", "added"]
    again = await ctl("collection", "add", "c", first.id, "none", "-o", "json")
    assert again.code == 1
    assert [row["outcome"] for row in json.loads(again.out)] == ["unchanged", "failed"]
    listed = (await ctl("collection", "files", "c", "-o", "name")).out.split()
    assert sorted(listed) == sorted([first.id, second.id])
    assert (await ctl("collection", "remove", "c", first.id)).code == 0
    assert (await ctl("file", "show", first.id)).code == 0
    assert (await ctl("collection", "remove", "c", second.id, "--delete")).code == 2
    gone = await ctl("collection", "remove", "c", second.id, "--delete", "--yes", "-o", "json")
    assert [row["outcome"] for row in json.loads(gone.out)] == ["deleted"]
    assert (await ctl("file", "show", second.id)).code == 5


async def test_query(ctl: Ctl, control: Control, owner: None) -> None:
    await ctl("collection", "create", "c")
    file = await processed(control, b"gzip compresses files " * 20, "zip.md", collection="c")
    told = await ctl("collection", "query", "c", "gzip", "-k", "1")
    assert told.out.splitlines()[0].split() == ["SCORE", "FILE", "PAGE", "TEXT"]
    assert "zip.md" in told.out
    explained = await ctl("collection", "query", "c", "gzip", "--explain", "--threshold", "0")
    heading = explained.out.splitlines()[0]
    assert heading.split() == ["SCORE", "FILE", "PAGE", "DENSE", "LEXICAL", "SIMILARITY", "TEXT"]
    assert "#1 " in explained.out.splitlines()[1]
    answer = json.loads((await ctl("collection", "query", "c", "gzip", "-o", "json")).out)
    assert (answer["warnings"], answer["passages"][0]["lexical_rank"]) == ([], 1)
    lines = (await ctl("collection", "query", "c", "gzip", "--dense", "-o", "jsonl")).out.splitlines()
    assert json.loads(lines[0])["lexical_rank"] is None
    assert (await ctl("collection", "query", "c", "gzip", "-o", "name")).out.split()[0] == file.id
    assert (await ctl("collection", "query", "none", "gzip")).code == 5
    assert (await ctl("collection", "query", "c", "gzip", "-k", "0")).code == 2


async def test_what_a_search_could_not_do_is_told(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    long = Passage(text="gzip  compresses\n" * 50, score=0.5, file_id="1", file="zip.md", page=2)
    answer = SearchAnswer(passages=[long], warnings=["the embedder is down: searched for words only"])
    monkeypatch.setattr(ControlClient, "call", lambda *_, **__: answer)
    told = await ctl("collection", "query", "c", "gzip")
    assert told.out.splitlines()[1].startswith("0.500  zip.md  2     gzip compresses gzip")
    assert told.out.endswith(" ...\n")
    assert told.err == "gatewayctl: the embedder is down: searched for words only\n"
    as_json = await ctl("collection", "query", "c", "gzip", "-o", "json")
    assert json.loads(as_json.out)["warnings"] == answer.warnings
    assert json.loads(as_json.out)["passages"][0]["text"] == long.text
    assert as_json.err == ""


async def test_delete(ctl: Ctl, control: Control, owner: None) -> None:
    await ctl("collection", "create", "c")
    file = await processed(control, b"one", collection="c")
    assert (await ctl("collection", "delete", "c")).code == 2
    assert (await ctl("collection", "delete", "c", "--dry-run")).out == "dry run: removed collection c\n"
    assert (await ctl("collection", "delete", "c", "--yes")).out == "removed collection c\n"
    assert (await ctl("collection", "delete", "c", "--yes")).code == 5
    assert (await ctl("file", "show", file.id)).code == 0


async def test_check(ctl: Ctl, control: Control, owner: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c", "d"):
        await ctl("collection", "create", name)
    await processed(control, b"one", collection="c")
    assert (await ctl("collection", "check", "-o", "name")).code == 0
    [row] = json.loads((await ctl("collection", "check", "c", "-o", "json")).out)
    assert (row["name"], row["files"], row["problems"]) == ("c", 1, [])
    bad = CheckReport(id="1", name="c", files=1, passages=2, vectors=1, problems=["1 vector was missing"])
    monkeypatch.setattr(ControlClient, "call", lambda *_, **__: bad)
    told = await ctl("collection", "check", "c")
    assert (told.code, "1 vector was missing" in told.out) == (1, True)


async def test_reindex(ctl: Ctl, owner: None) -> None:
    state = (await ctl("collection", "reindex", "--status", "-o", "name")).out
    assert state == "current\n"
    done = await ctl("collection", "reindex", "--wait", "-o", "json")
    assert (done.code, json.loads(done.out)["state"]) == (0, "current")


async def test_a_reindex_that_runs_is_joined(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["running", "running", "failed"]

    def call(client: ControlClient, endpoint: object) -> Reindex:
        if endpoint is routes.START_REINDEX:
            raise CommandError("conflict", "cannot begin: a reindex runs")
        assert endpoint is routes.GET_REINDEX
        return Reindex(state=states.pop(0), done=3 - len(states), total=3, error="the model is gone")

    monkeypatch.setattr(ControlClient, "call", call)
    monkeypatch.setattr("gatewayctl.commands.collections.POLL_SECONDS", 0)
    assert (await ctl("collection", "reindex")).code == 6
    told = await ctl("collection", "reindex", "--wait")
    assert (told.code, "the model is gone" in told.out) == (1, True)


async def test_names_with_slashes_are_addressed(ctl: Ctl, owner: None) -> None:
    assert (await ctl("collection", "create", "team a/b ?")).code == 0
    assert (await ctl("collection", "show", "team a/b ?", "-o", "name")).out == "team a/b ?\n"
