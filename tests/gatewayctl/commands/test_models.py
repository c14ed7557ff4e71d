"""gatewayctl model."""

import json
from pathlib import Path

import pytest

from gatewayd.catalog import model_list
from tests.fakes.daemons.control_plugins import TOOL
from tests.fakes.daemons.control_socket import Control, Ctl
from tests.fakes.providers.models import make_model

ANN = "ann@example.org"


@pytest.fixture(autouse=True)
async def ann(control: Control) -> None:
    await control.accounts.add_user("ann")


async def test_list_and_show(ctl: Ctl) -> None:
    assert (await ctl("model", "list", "-o", "name")).out == "alpha\nbeta/b:1\n"
    assert "AVAILABLE" in (await ctl("model", "list", "--refresh")).out
    shown = json.loads((await ctl("model", "show", "beta/b:1", "-o", "json")).out)
    assert list(shown) == [
        "id",
        "name",
        "owned_by",
        "source",
        "available",
        "recorded",
        "active",
        "grants",
        "base",
        "family",
        "system",
        "params",
        "knowledge",
        "tools",
        "filters",
        "actions",
    ]
    assert (shown["source"], shown["recorded"]) == ("fake", False)
    missing = await ctl("model", "show", "gamma")
    assert (missing.code, missing.out) == (5, "")


async def test_problem_of_a_source_is_told_beside_the_list(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_list, "MAX_MODELS", 2)
    control.source.models = [make_model(f"m{number}") for number in range(3)]
    listed = await ctl("model", "list", "--refresh", "-o", "name")
    assert (listed.out, listed.err) == ("m0\nm1\n", "")
    assert "warning: cannot keep all models" in (await ctl("model", "list")).err


async def test_publish_lets_everyone_use_it(ctl: Ctl) -> None:
    assert (await ctl("model", "list", "--user", ANN, "-o", "name")).out == ""
    dry = await ctl("model", "publish", "alpha", "--dry-run", "-o", "json")
    assert json.loads(dry.out)["grants"][0]["principal"] == "*"
    assert (await ctl("model", "list", "--user", ANN, "-o", "name")).out == ""
    assert (await ctl("model", "publish", "alpha")).out == "changed model alpha\n"
    assert (await ctl("model", "publish", "alpha")).out == "unchanged model alpha\n"
    assert (await ctl("model", "list", "--user", ANN, "-o", "name")).out == "alpha\n"
    assert (await ctl("model", "revoke-access", "alpha", "--everyone")).code == 0
    assert (await ctl("model", "list", "--user", ANN, "-o", "name")).out == ""


async def test_grants_to_users_and_groups(ctl: Ctl) -> None:
    await ctl("group", "create", "team")
    await ctl("group", "add-member", "team", ANN)
    done = await ctl("model", "grant", "beta/b:1", "--group", "team", "-o", "json")
    grants = json.loads(done.out)["grants"]
    assert [(grant["principal_type"], grant["principal"], grant["permission"]) for grant in grants] == [
        ("group", "team", "read")
    ]
    assert (await ctl("model", "list", "--user", ANN, "-o", "name")).out == "beta/b:1\n"
    await ctl("model", "grant", "beta/b:1", "--user", ANN, "--permission", "write")
    assert "group team, user ann@example.org (write)" in (await ctl("model", "show", "beta/b:1")).out
    await ctl("model", "revoke-access", "beta/b:1", "--group", "team")
    assert "group team" not in (await ctl("model", "show", "beta/b:1")).out


async def test_bad_access(ctl: Ctl) -> None:
    assert (await ctl("model", "grant", "alpha")).code == 2
    assert (await ctl("model", "grant", "alpha", "--user", "zoe@example.org")).code == 5
    assert (await ctl("model", "grant", "gamma", "--everyone")).code == 5
    assert (await ctl("model", "grant", "alpha", "--everyone", "--permission", "own")).code == 2


async def test_models_that_stand_on_others(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    (tmp_path / "prompt").write_text("Be kind.\n")
    (tmp_path / "weather.py").write_text(TOOL)
    await ctl("tool", "install", str(tmp_path / "weather.py"))
    await ctl("collection", "create", "handbook")
    given = ["--system", f"@{tmp_path}/prompt", "--knowledge", "handbook", "--tool", "weather"]
    params = ["--param", "temperature=0.2", "--param", "stop=END"]
    dry = await ctl("model", "create", "desk", "--base", "alpha", *given, *params, "--dry-run")
    assert dry.out == "dry run: created model desk\n"
    done = await ctl("model", "create", "desk", "--base", "alpha", "--name", "Desk", *given, *params)
    assert done.out == "created model desk\n"
    shown = json.loads((await ctl("model", "show", "desk", "-o", "json")).out)
    assert (shown["base"], shown["name"], shown["system"]) == ("alpha", "Desk", "Be kind.")
    assert (shown["params"], shown["knowledge"]) == ({"temperature": 0.2, "stop": "END"}, ["handbook"])
    assert "PARAMS     temperature=0.2, stop=END" in (await ctl("model", "show", "desk")).out
    assert (await ctl("model", "create", "desk", "--base", "alpha")).code == 6
    assert (await ctl("model", "create", "other", "--base", "none")).code == 5
    assert (await ctl("model", "create", "other")).code == 2
    assert (await ctl("model", "create", "other", "--base", "alpha", "--system", "@/none")).code == 2
    assert (await ctl("model", "remove", "desk")).code == 2
    assert (await ctl("model", "remove", "desk", "--yes")).out == "removed model desk\n"
    assert (await ctl("model", "remove", "desk", "--yes")).code == 5


async def test_family(ctl: Ctl) -> None:
    assert (await ctl("model", "update", "alpha", "--family", "gpt-5.2", "--dry-run")).code == 0
    assert "gpt-5.2" not in (await ctl("model", "show", "alpha")).out
    for _ in range(2):
        assert (await ctl("model", "update", "alpha", "--family", "gpt-5.2")).code == 0
    shown = json.loads((await ctl("model", "show", "alpha", "-o", "json")).out)
    assert (shown["family"], shown["recorded"], shown["grants"]) == ("gpt-5.2", True, [])
    assert (await ctl("model", "update", "alpha", "--family", "x" * 257)).code == 1
    assert (await ctl("model", "update", "alpha", "--family", "")).code == 0
    assert json.loads((await ctl("model", "show", "alpha", "-o", "json")).out)["family"] == ""
