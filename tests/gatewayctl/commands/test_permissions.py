"""gatewayctl permission."""

import json

from gatewayctl.wire import routes
from gatewayctl.wire.plugins import NewPlugin
from gatewayd.accounts.records import Role
from tests.fakes.daemons.control_plugins import TOOL
from tests.fakes.daemons.control_socket import Control, Ctl


async def allowed(ctl: Ctl, name: str, *more: str) -> bool:
    shown = json.loads((await ctl("permission", "show", name, *more, "-o", "json")).out)
    assert list(shown) == ["name", "allowed", "origin", "initial"]
    return bool(shown["allowed"])


async def test_defaults_are_listed_set_and_reset(ctl: Ctl, control: Control) -> None:
    assert "features.api_keys" in (await ctl("permission", "list", "-o", "name")).out.splitlines()
    assert not await allowed(ctl, "features.api_keys")
    dry = await ctl("permission", "set", "features.api_keys=true", "--dry-run")
    assert dry.out == "dry run: changed features.api_keys=true by default\n"
    assert not await allowed(ctl, "features.api_keys")
    done = await ctl("permission", "set", "features.api_keys=true", "chat.delete=false", "-o", "json")
    written = json.loads(done.out)
    assert (written["outcome"], [row["name"] for row in written["permissions"]]) == (
        "changed",
        ["chat.delete", "features.api_keys"],
    )
    assert await allowed(ctl, "features.api_keys")
    assert (await ctl("permission", "reset", "features.api_keys")).code == 0
    assert not await allowed(ctl, "features.api_keys")
    assert not await allowed(ctl, "chat.delete")
    assert (await ctl("permission", "reset")).code == 2
    assert (await ctl("permission", "reset", "--yes")).code == 0
    assert await allowed(ctl, "chat.delete")


async def test_group_permissions(ctl: Ctl) -> None:
    await ctl("group", "create", "g")
    done = await ctl("permission", "set", "features.api_keys=true", "--group", "g")
    assert done.out == "changed features.api_keys=true of group g\n"
    assert (await ctl("permission", "list", "--group", "g", "-o", "name")).out == "features.api_keys\n"
    assert await allowed(ctl, "features.api_keys", "--group", "g")
    assert (await ctl("permission", "show", "chat.delete", "--group", "g")).code == 5
    assert (await ctl("permission", "reset", "features.api_keys", "--group", "g")).code == 0
    assert (await ctl("permission", "list", "--group", "g", "-o", "name")).out == ""
    assert (await ctl("permission", "list", "--group", "none")).code == 5


async def test_explain_names_every_source(ctl: Ctl, control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    root = await control.accounts.add_user("root", role=Role.ADMIN)
    await control.accounts.grant_keys(ann)
    rows = json.loads((await ctl("permission", "explain", "ann@example.org", "-o", "json")).out)
    by_name = {row["name"]: row for row in rows}
    assert by_name["features.api_keys"] == {
        "name": "features.api_keys",
        "allowed": True,
        "allowed_by": ["key holders"],
    }
    assert by_name["chat.delete"]["allowed_by"] == ["default"]
    assert by_name["workspace.models"] == {"name": "workspace.models", "allowed": False, "allowed_by": []}
    rows = json.loads(
        (await ctl("permission", "explain", root.id, "--permission", "workspace.models", "-o", "json")).out
    )
    assert rows[0]["allowed_by"] == ["administrator"]
    assert (await ctl("permission", "explain", root.id, "--permission", "no.such")).code == 5


async def test_bad_names_and_values(ctl: Ctl) -> None:
    assert (await ctl("permission", "set", "features.api_keys=yes")).code == 2
    assert (await ctl("permission", "set", "features.api_keys")).code == 2
    assert (await ctl("permission", "set", "nonsense=true")).code == 2
    assert (await ctl("permission", "set", "feature.api_keys=true")).code == 1
    assert (await ctl("permission", "show", "features.none")).code == 5


async def test_audit_lists_who_writes_tools_without_the_permission(ctl: Ctl, control: Control) -> None:
    none = await ctl("permission", "audit")
    assert (none.code, json.loads((await ctl("permission", "audit", "-o", "json")).out)) == (0, [])
    ann = await control.accounts.add_user("ann")
    await control.call(
        control.client.call,
        routes.INSTALL_PLUGIN,
        "tool",
        "weather",
        body=NewPlugin(content=TOOL, user=ann.email),
    )
    shown = await ctl("permission", "audit")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["FINDING", "TOOL", "HOLDER", "ACCOUNTS"],
        ["owner", "weather", ann.email, "1"],
    ]
    assert json.loads((await ctl("permission", "audit", "-o", "json")).out) == [
        {"finding": "owner", "tool": "weather", "holder": ann.email, "accounts": 1}
    ]
    assert (await ctl("permission", "audit", "-o", "name")).out == "weather\n"
