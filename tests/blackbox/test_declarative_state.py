"""Declarative state of real daemons on both databases: apply, kill -9, races, and the largest documents."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import tomli_w

from gatewayctl.wire.upkeep.state import MAX_DOCUMENT_BYTES
from tests.fakes.daemons.control_plugins import BROKEN, FILTER, TOOL
from tests.fakes.daemons.daemon import Daemon, running_daemon

PASSWORD = "correct horse battery 9"
PEOPLE = 800
MANY = 10_000


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return {"DATABASE_URL": request.getfixturevalue("postgres").migrated_database()}


@pytest.fixture
def daemon(settings: dict[str, str], tmp_path: Path) -> Iterator[Daemon]:
    with running_daemon(tmp_path / "s", **settings) as running:
        yield running


def state(daemon: Daemon, *arguments: str, document: Any = None, **env: str) -> CompletedProcess[str]:
    """Run a verb of `gatewayctl state` with a document on its standard input."""
    text = None if document is None else tomli_w.dumps({"format": 1, **document})
    given = () if document is None else ("-",)
    return daemon.run_ctl("state", *arguments, *given, input=text, env=env, seconds=300)


def everything() -> dict[str, Any]:
    return {
        "settings": {"ENABLE_SIGNUP": False, "DEFAULT_GROUP_ID": "Dev"},
        "permissions": {"features": {"api_keys": True}},
        "users": {
            "ann@example.com": {"name": "Ann", "role": "admin", "password": {"env": "ANN"}},
            "bob@example.com": {"active": False},
        },
        "groups": {"Dev": {"members": ["bob@example.com"], "permissions": {"chat": {"edit": True}}}},
        "tool_servers": {"maps": {"url": "http://127.0.0.1:9", "key": {"env": "ANN"}, "type": "mcp"}},
        "functions": {"loud": {"content": FILTER, "active": True, "valves": {"words": ["x"]}}},
        "tools": {"weather": {"content": TOOL, "readers": ["*"], "writers": ["group:Dev"]}},
        "collections": {"Handbook": {"description": "rules", "readers": ["group:Dev"]}},
        "models": {
            "helper": {
                "base": "alpha",
                "system": "be kind",
                "params": {"stop": {"json": "[null, 1]"}},
                "knowledge": ["Handbook"],
                "tools": ["weather"],
                "readers": ["bob@example.com"],
            }
        },
    }


def test_a_document_makes_the_state_and_an_export_of_it_makes_another_gateway(
    daemon: Daemon, tmp_path: Path
) -> None:
    done = state(daemon, "apply", "--yes", document=everything(), ANN=PASSWORD.replace(" ", "-"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "applied: 8 created, 3 changed"), done
    again = state(daemon, "apply", "--yes", document=everything(), ANN=PASSWORD.replace(" ", "-"))
    assert again.stdout == "nothing to change\n"
    body = {"email": "ann@example.com", "password": PASSWORD.replace(" ", "-")}
    assert daemon.call("POST", "/api/v1/auths/signin", body)[0] == 200

    exported = state(daemon, "export").stdout
    copy = tmp_path / "copy.toml"
    copy.write_text(exported)
    assert state(daemon, "diff", str(copy), "--prune").returncode == 0
    with running_daemon(tmp_path / "other") as other:
        assert state(other, "apply", str(copy), "--yes").returncode == 0
        assert state(other, "export").stdout == exported
        assert state(other, "diff", str(copy), "--prune").returncode == 0

    assert daemon.stop() == 0
    secret = PASSWORD.replace(" ", "-")
    assert secret not in exported
    assert not any(secret in line for line in daemon.log)


def test_renamed_objects_and_prune(daemon: Daemon) -> None:
    secret = PASSWORD.replace(" ", "-")
    state(daemon, "apply", "--yes", document=everything(), ANN=secret)
    renamed = everything()
    renamed["groups"] = {"Developers": renamed["groups"]["Dev"]}
    refused = state(daemon, "diff", "--prune", document=renamed, ANN=secret)
    assert (refused.returncode, "tools.weather.writers" in refused.stderr) == (1, True), refused
    text = json.dumps(renamed).replace("group:Dev", "group:Developers").replace('"Dev"', '"Developers"')
    renamed = json.loads(text)
    done = state(daemon, "apply", "--prune", "--yes", document=renamed, ANN=secret)
    assert done.returncode == 0, done
    assert daemon.run_ctl("group", "list", "-o", "name").stdout == "Developers\n"
    assert state(daemon, "diff", "--prune", document=renamed, ANN=secret).returncode == 0
    last = state(daemon, "apply", "--prune", "--yes", document={"users": {}, "groups": {}})
    assert (last.returncode, "last active administrator" in last.stderr) == (0, True), last
    assert daemon.run_ctl("user", "list", "-o", "name").stdout == "ann@example.com\n"


def test_a_source_that_does_not_load_changes_nothing(daemon: Daemon) -> None:
    document = {
        "groups": {"first": {}},
        "functions": {"good": {"content": FILTER}, "loud": {"content": BROKEN}},
    }
    refused = state(daemon, "apply", "--yes", document=document)
    assert (refused.returncode, "functions.loud.content" in refused.stderr) == (1, True), refused
    assert daemon.run_ctl("group", "list", "-o", "name").stdout == ""
    assert "good" not in daemon.run_ctl("function", "list", "-o", "name").stdout.split()


def crowd(size: int = PEOPLE) -> dict[str, Any]:
    people = [f"u{number:05}@example.com" for number in range(size)]
    return {"users": {each: {"name": each[:6]} for each in people}, "groups": {"all": {"members": people}}}


@pytest.mark.long
@pytest.mark.timeout(400)
def test_ten_thousand_users(tmp_path: Path) -> None:
    with running_daemon(tmp_path / "s") as daemon:
        done = state(daemon, "apply", "--yes", document=crowd(MANY))
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"applied: {MANY + 1} created")
        assert users(daemon) == MANY
        assert state(daemon, "diff", "--prune", document=crowd(MANY)).returncode == 0


@pytest.mark.timeout(300)
def test_kill_9_in_the_middle_and_another_apply_make_the_whole_state(
    settings: dict[str, str], tmp_path: Path
) -> None:
    with running_daemon(tmp_path / "s", **settings) as daemon:
        run = threading.Thread(target=state, args=(daemon, "apply", "--yes"), kwargs={"document": crowd()})
        run.start()
        deadline = time.monotonic() + 120
        while users(daemon) < 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert 50 <= users(daemon) < PEOPLE
        assert daemon.call("GET", "/health")[0] == 200
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        run.join()
    with running_daemon(tmp_path / "s", **settings) as daemon:
        assert 0 < users(daemon) < PEOPLE
        done = state(daemon, "apply", "--yes", document=crowd())
        assert done.returncode == 0, done.stderr
        assert users(daemon) == PEOPLE
        assert (
            json.loads(daemon.run_ctl("group", "show", "all", "-o", "json").stdout)["member_count"] == PEOPLE
        )
        assert state(daemon, "diff", "--prune", document=crowd()).returncode == 0
        assert daemon.run_ctl("audit", "verify").returncode == 0


def users(daemon: Daemon) -> int:
    return len(daemon.run_ctl("user", "list", "-o", "name").stdout.split())


def test_two_applies_at_once_are_made_one_after_the_other(daemon: Daemon) -> None:
    documents = [
        {"groups": {f"g{number}": {"description": str(side)} for number in range(300)}} for side in "ab"
    ]
    done: list[CompletedProcess[str]] = []
    runs = [
        threading.Thread(
            target=lambda given=given: done.append(state(daemon, "apply", "--yes", document=given))
        )
        for given in documents
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    codes = sorted(each.returncode for each in done)
    assert codes in ([0, 0], [0, 6]), done
    groups = json.loads(daemon.run_ctl("group", "list", "-o", "json").stdout)
    assert len(groups) == 300
    assert len({each["description"] for each in groups}) == 1


def test_the_largest_document(daemon: Daemon) -> None:
    text = "x" * 9_000
    groups = {f"g{number}": {"description": text} for number in range(MAX_DOCUMENT_BYTES // 9_200)}
    larger = {**groups, **{f"h{number}": {"description": text} for number in range(200)}}
    assert state(daemon, "apply", "--dry-run", document={"groups": groups}).returncode == 0
    refused = state(daemon, "apply", "--dry-run", document={"groups": larger})
    assert (refused.returncode, "over the limit" in refused.stderr) == (1, True), refused.stderr[:500]
