"""gatewayctl state: export, diff and apply, over the services with stores in memory."""

import json
import os
from pathlib import Path

import pytest
import tomli_w

from gatewayctl.state_document import read_state
from tests.fakes.daemons.control_plugins import BROKEN, FILTER, TOOL
from tests.fakes.daemons.control_socket import Control, Ctl

PASSWORD = "correct horse battery 9"
CANARY = "canary-secret-value"


def document(folder: Path, **tables: object) -> str:
    path = folder / "state.toml"
    path.write_text(tomli_w.dumps({"format": 1, **tables}))
    return str(path)


def everything(folder: Path) -> str:
    (folder / "secret").write_text(f"{CANARY}\n")
    secret = {"file": "secret"}
    return document(
        folder,
        settings={"ENABLE_SIGNUP": False, "DEFAULT_GROUP_ID": "Dev"},
        permissions={"features": {"api_keys": True}},
        users={
            "Ann@Example.com": {"name": "Ann", "role": "admin", "password": {"env": "ANN_PASSWORD"}},
            "bob@example.com": {"username": "bob"},
        },
        groups={"Dev": {"members": ["bob@example.com"], "permissions": {"chat": {"edit": True}}}},
        tool_servers={"maps": {"url": "http://127.0.0.1:9", "key": secret, "readers": ["group:dev"]}},
        functions={
            "loud": {"content": FILTER, "active": True, "valves": {"words": ["x"], "api_key": secret}}
        },
        tools={"weather": {"content": TOOL, "owner": "bob@example.com", "readers": ["*"]}},
        collections={"Handbook": {"description": "rules", "readers": ["group:Dev"]}},
        models={
            "helper": {
                "base": "alpha",
                "system": "be kind",
                "knowledge": ["Handbook"],
                "tools": ["weather", "server:maps"],
                "filters": ["loud"],
                "params": {"temperature": 0.5},
                "writers": ["bob@example.com"],
            }
        },
    )


async def test_a_second_apply_changes_nothing_and_an_export_is_the_same_state(
    ctl: Ctl, control: Control, owner: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN_PASSWORD", PASSWORD)
    path = everything(tmp_path)
    shown = await ctl("state", "diff", path)
    assert (shown.code, "plan: 8 created, 3 changed" in shown.out) == (2, True), shown
    assert (await ctl("user", "list", "-o", "name")).out == "boss@example.org\n"
    done = await ctl("state", "apply", path, "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "applied: 8 created, 3 changed"), done
    again = await ctl("state", "apply", path, "--yes")
    assert (again.code, again.out) == (0, "nothing to change\n")
    assert (await ctl("state", "diff", path)).code == 0

    exported = await ctl("state", "export")
    assert exported.out == (await ctl("state", "export")).out
    for text in (shown.out, done.out, exported.out, repr(control.audit.store.kept)):
        assert CANARY not in text
        assert PASSWORD not in text
    copy = tmp_path / "copy.toml"
    copy.write_text(exported.out)
    pruned = await ctl("state", "diff", str(copy), "--prune")
    assert (pruned.code, pruned.out) == (0, "nothing to change\n"), pruned
    stored = control.plugins.plugged.registry
    assert stored.list()[0].valves["api_key"] == CANARY
    assert control.plugins.servers.rows["maps"].key == CANARY

    actions = [row.action for row in control.audit.store.kept]
    assert {
        "user create",
        "group create",
        "permission change",
        "setting change",
        "tool-server create",
        "function create",
        "tool create",
        "collection create",
        "model create",
    } <= set(actions)


async def test_prune_deletes_objects_of_named_tables_only(
    ctl: Ctl, owner: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN_PASSWORD", PASSWORD)
    assert (await ctl("state", "apply", everything(tmp_path), "--yes")).code == 0
    path = document(tmp_path, models={}, users={"bob@example.com": {}})
    left = await ctl("state", "diff", path)
    assert (left.code, left.out) == (0, "nothing to change\n")
    plan = json.loads((await ctl("state", "diff", path, "--prune", "-o", "json")).out)
    assert [change["path"] for change in plan["changes"]] == ["models.helper", 'users."ann@example.com"']
    assert plan["notes"] == ['users."boss@example.org" stays: it is the last active administrator']
    assert (await ctl("state", "apply", path, "--prune", "--yes")).code == 0
    assert (await ctl("user", "list", "-o", "name")).out == "boss@example.org\nbob@example.com\n"
    assert (await ctl("group", "list", "-o", "name")).out == "Dev\n"
    assert (await ctl("state", "diff", path, "--prune")).code == 0

    empty = document(
        tmp_path,
        **{name: {} for name in ("settings", "permissions", "groups", "collections", "tools", "functions")},
        tool_servers={},
    )
    gone = await ctl("state", "apply", empty, "--prune", "--yes")
    assert gone.out.splitlines()[-1] == "applied: 8 deleted", gone
    rest = json.loads((await ctl("state", "export", "-o", "json")).out)["document"]
    assert {name for name, objects in rest.items() if objects} == {"format", "users", "providers"}


async def test_a_plan_that_is_stale_is_refused(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    path = document(tmp_path, groups={"Dev": {"description": "x"}})
    plan = json.loads((await ctl("state", "diff", path, "-o", "json")).out)["digest"]
    await ctl("group", "create", "dev")
    late = await ctl("state", "apply", path, "--plan", plan)
    assert (late.code, "the state has changed since it was made" in late.err) == (6, True)
    shown = await ctl("state", "diff", path)
    assert shown.out.splitlines()[:2] == ["~ groups.dev", '    description: "" -> "x"']
    digest = shown.out.splitlines()[-1].removeprefix("digest: ")
    assert (await ctl("state", "apply", path, "--plan", digest)).out == "applied: 1 changed\n"


async def test_questions_and_forms(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    path = document(tmp_path, groups={"Dev": {}})
    assert (await ctl("state", "apply", path)).code == 2
    assert (await ctl("state", "apply", path, "--dry-run")).out.startswith("+ groups.Dev\nplan: 1 created\n")
    assert (await ctl("state", "diff", path, "-o", "name")).out == "groups.Dev\n"
    assert json.loads((await ctl("state", "apply", path, "--yes", "-o", "json")).out)["dry_run"] is False
    given = await ctl(
        "state", "diff", "-", stdin='format = 1\n[groups.dev]\nmembers = ["boss@example.org"]\n'
    )
    assert '    members: +["boss@example.org"]' in given.out
    assert (await ctl("state", "export", "--table", "groups")).out.startswith("format = 1\n\n[groups.Dev]\n")
    assert (await ctl("state", "export", "--table", "people")).code == 1


async def test_providers_are_read_and_compared_and_never_written(
    ctl: Ctl, control: Control, owner: None, tmp_path: Path
) -> None:
    exported = await ctl("state", "export", "--table", "providers")
    assert '[providers.acme]\nkind = "openai"\nbase_url = "https://acme.test/v1"' in exported.out
    assert "key" not in exported.out
    path = document(tmp_path, providers={"acme": {"prefix": "a."}, "other": {"kind": "openai"}})
    shown = await ctl("state", "diff", path)
    assert (shown.code, "plan: no changes; 2 differences of providers stay" in shown.out) == (2, True)
    assert (await ctl("state", "apply", path, "--yes")).code == 0
    assert (await ctl("state", "export", "--table", "providers")).out == exported.out


WRONG = [
    ('[userz."a@example.com"]', "userz"),
    ('[users."a@example.com"]\nage = 3', 'users."a@example.com".age'),
    ('[users."a@example.com"]\nrole = "king"', 'users."a@example.com".role'),
    ('[users."a@example.com"]\nname = 3', 'users."a@example.com".name'),
    ('users = ["a"]', "users"),
    ('[users]\n"a@example.com" = 3', 'users."a@example.com"'),
    ("[users.alice]", "users.alice"),
    ('[users."a@example.com"]\n[users."A@Example.com"]', 'users."A@Example.com"'),
    ('[users."a@example.com"]\npassword = ""', 'users."a@example.com".password'),
    ('[users."a@example.com"]\nusername = "u"\n[users."b@example.com"]\nusername = "u"', "username"),
    ('[users."boss@example.org"]\nrole = "user"', 'users."boss@example.org".role'),
    ('[users."boss@example.org"]\nactive = false', 'users."boss@example.org".active'),
    ('[groups.g]\nmembers = ["nobody@example.com"]', "groups.g.members"),
    ("[groups.g]\nmembers = [3]", "groups.g.members"),
    ("[groups.g]\npermissions.chat.fly = true", "groups.g.permissions"),
    ("[groups.g]\n[groups.G]", "groups.G"),
    ("[permissions.features]\nfly = true", "permissions"),
    ("[permissions.features]\napi_keys = 1", "permissions"),
    ("[settings]\nENABLE_SIGNUPS = true", "settings.ENABLE_SIGNUPS"),
    ("[settings]\nENABLE_SIGNUP = 4", "settings.ENABLE_SIGNUP"),
    ('[settings]\nDEFAULT_GROUP_ID = "none"', "settings.DEFAULT_GROUP_ID"),
    ("[tool_servers.t]\nname = 'x'", "tool_servers.t.url"),
    ("[tool_servers.t]\nurl = 'ftp://x'", "tool_servers.t.url"),
    ("[tool_servers.t]\nurl = 'http://x'\nkey = 'a b'", "tool_servers.t.key"),
    ("[tool_servers.t]\nurl = 'http://x'\nreaders = ['group:none']", "tool_servers.t.readers"),
    ("[tool_servers.fixed]\nname = 'x'", "tool_servers.fixed"),
    ("[functions.f]\nname = 'x'", "functions.f.content"),
    ("[functions.'a b']\ncontent = 'x'", 'functions."a b"'),
    (f"[functions.f]\ncontent = '''{BROKEN}'''", "functions.f.content"),
    (f"[functions.f]\ncontent = '''{FILTER}'''\nvalves.lost = 1", "functions.f.valves.lost"),
    (f"[tools.t]\ncontent = '''{TOOL}'''\nowner = 'nobody@example.com'", "tools.t.owner"),
    ("[collections.c]\nname = 'd'", "collections.c.name"),
    ("[collections.c]\nwriters = ['nobody']", "collections.c.writers"),
    ("[models.m]\nbase = 'm'", "models.m.base"),
    ("[models.m]\nknowledge = ['none']", "models.m.knowledge"),
    ("[models.m]\ntools = ['none']", "models.m.tools"),
    ("[models.m]\ntools = ['server:none']", "models.m.tools"),
    ("[models.m]\nreaders = ['group:none']", "models.m.readers"),
    ("[models.m]\nmeta.family = 3", "models.m.meta"),
    ("[models.a]\nbase = 'b'\n[models.b]\nbase = 'alpha'", "models.a.base"),
]


@pytest.mark.parametrize(("text", "path"), WRONG)
async def test_one_error_names_the_path_and_nothing_is_written(
    ctl: Ctl, control: Control, owner: None, text: str, path: str
) -> None:
    good = '[groups.first]\n[users."first@example.com"]\n'
    merged = f"format = 1\n{text}\n" if text.startswith(("[users", "[groups", "users")) else f"{good}{text}\n"
    given = merged if merged.startswith("format") else f"format = 1\n{merged}"
    refused = await ctl("state", "apply", "-", "--yes", stdin=given)
    assert refused.code in {1, 6}, refused
    assert refused.err.count("\n") == 1 or "hint" in refused.err
    assert path in refused.err, refused.err
    assert (await ctl("user", "list", "-o", "name")).out == "boss@example.org\n"
    assert (await ctl("group", "list", "-o", "name")).out == ""


UNREADABLE = [
    ("[users", "cannot read -"),
    ("format = 1\nformat = 1", "cannot read -"),
    ("format = 2", "format"),
    ("x = 1", "format"),
    ("format = 1\n[models.m]\nparams.at = 2026-01-01", "models.m.params.at: expected no date"),
    ("format = 1\n[models.m]\nparams.at = nan", "models.m.params.at: expected a finite number"),
    ("format = 1\n[models.m]\nparams.at = 99999999999999999999", "models.m.params.at: expected an integer"),
    ("format = 1\n[models.m]\nparams.a = " + "[" * 150 + "]" * 150, "nested too deeply"),
    ("format = 1\n[models.m]\nparams.a = " + "[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ("format = 1\n[models.m.params]\n" + "a." * 150 + "b = 1", "nested too deeply"),
    ('format = 1\n[models.m]\nparams = { json = "{" }', "models.m.params: its text is not JSON"),
    ('format = 1\n[users."a@example.com"]\npassword = { env = "NO_SUCH_NAME" }', "NO_SUCH_NAME"),
    ('format = 1\n[users."a@example.com"]\npassword = { file = "/nonexistent" }', 'users."a@example.com"'),
    ('format = 1\n[tools.t]\ncontent = { file = "/nonexistent" }', "tools.t.content: cannot read"),
]


@pytest.mark.parametrize(("text", "words"), UNREADABLE)
async def test_a_document_that_cannot_be_read(ctl: Ctl, text: str, words: str) -> None:
    refused = await ctl("state", "diff", "-", stdin=text)
    assert (refused.code, words in refused.err) == (1, True), refused
    assert (await ctl("state", "diff", str(Path(os.devnull) / "x"))).code == 1


async def test_a_source_whose_valves_are_refused_is_as_before(
    ctl: Ctl, control: Control, owner: None, tmp_path: Path
) -> None:
    bad = {"content": FILTER, "valves": {"priority": "high"}}
    path = document(tmp_path, functions={"loud": bad}, groups={"first": {}})
    refused = await ctl("state", "apply", path, "--yes")
    assert (refused.code, "functions.loud.valves.priority" in refused.err) == (1, True), refused
    assert (await ctl("group", "list", "-o", "name")).out == ""
    good = document(tmp_path, functions={"loud": {"content": FILTER, "valves": {"priority": "3"}}})
    assert (await ctl("state", "apply", good, "--yes")).code == 0
    assert (await ctl("state", "diff", good)).code == 0
    typed = {"valves": {"priority": "high"}}
    planned = await ctl("state", "diff", document(tmp_path, functions={"loud": typed}))
    assert (planned.code, "functions.loud.valves.priority" in planned.err) == (1, True), planned


async def test_many_users(ctl: Ctl, control: Control, owner: None, tmp_path: Path) -> None:
    people = [f"u{number}@example.com" for number in range(500)]
    path = document(
        tmp_path, users={each: {"name": each} for each in people}, groups={"all": {"members": people}}
    )
    done = await ctl("state", "apply", path, "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "applied: 501 created"), done.err
    assert (await ctl("state", "diff", path)).code == 0
    rows = [row for row in control.audit.store.kept if row.action == "user create"]
    assert len(rows) == 500
    assert len(read_state(path).document["users"]) == 500
