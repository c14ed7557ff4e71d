"""gatewayctl setting."""

import json

from tests.fakes.daemons.control_socket import Control, Ctl


async def test_list_shows_the_origin_of_each_value(ctl: Ctl) -> None:
    listed = json.loads((await ctl("setting", "list", "-o", "json")).out)
    by_name = {row["name"]: row for row in listed}
    assert by_name["ENABLE_API_KEYS"] == {
        "name": "ENABLE_API_KEYS",
        "value": False,
        "origin": "default",
        "configured": False,
        "summary": by_name["ENABLE_API_KEYS"]["summary"],
    }
    assert "ORIGIN" in (await ctl("setting", "list")).out


async def test_set_and_reset(ctl: Ctl, control: Control) -> None:
    dry = await ctl("setting", "set", "ENABLE_API_KEYS=true", "--dry-run")
    assert dry.out == "dry run: changed ENABLE_API_KEYS=true (origin: stored)\n"
    assert control.accounts.runtime.flag("ENABLE_API_KEYS") is False
    done = await ctl("setting", "set", "ENABLE_API_KEYS=true", "DEFAULT_USER_ROLE=user", "-o", "json")
    assert [row["value"] for row in json.loads(done.out)["settings"]] == [True, "user"]
    assert control.accounts.runtime.flag("ENABLE_API_KEYS") is True
    again = await ctl("setting", "set", "ENABLE_API_KEYS=true")
    assert again.out == "unchanged ENABLE_API_KEYS=true (origin: stored)\n"
    shown = json.loads((await ctl("setting", "show", "ENABLE_API_KEYS", "-o", "json")).out)
    assert (shown["value"], shown["origin"]) == (True, "stored")
    assert (await ctl("setting", "reset", "ENABLE_API_KEYS", "--dry-run")).code == 0
    assert control.accounts.runtime.flag("ENABLE_API_KEYS") is True
    reset = await ctl("setting", "reset", "ENABLE_API_KEYS", "-o", "name")
    assert reset.out == "ENABLE_API_KEYS\n"
    assert control.accounts.runtime.flag("ENABLE_API_KEYS") is False


async def test_bad_settings_change_nothing(ctl: Ctl, control: Control) -> None:
    wrong = await ctl("setting", "set", "DEFAULT_USER_ROLE=user", "ENABLE_API_KEYS=maybe", "-o", "json")
    assert wrong.code == 1
    assert json.loads(wrong.err)["error"]["param"] == "ENABLE_API_KEYS"
    assert control.accounts.runtime.text("DEFAULT_USER_ROLE") == "pending"
    unknown = await ctl("setting", "set", "ENABLE_API_KEY=true")
    assert unknown.code == 5
    assert "did you mean ENABLE_API_KEYS" in unknown.err
    assert (await ctl("setting", "show", "NONE")).code == 5
    assert (await ctl("setting", "reset", "NONE")).code == 5
    assert (await ctl("setting", "set", "ENABLE_API_KEYS")).code == 2
