"""gatewayctl scim-token."""

import json
import re

from gatewayd import ids
from gatewayd.scim.tokens.rotation import TokenSource, fingerprint
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_a_token_from_first_to_last(ctl: Ctl, control: Control) -> None:
    first = (await ctl("scim-token", "create", "-o", "name")).out.strip()
    assert len(first) == 64
    assert control.tokens.digests == (ids.digest(first),)
    second = json.loads((await ctl("scim-token", "rotate", "-o", "json")).out)
    assert second["fingerprints"] == [fingerprint(second["value"]), fingerprint(first)]
    assert control.tokens.digests == (ids.digest(second["value"]), ids.digest(first))
    retired = await ctl("scim-token", "retire")
    assert retired.out == "removed the older SCIM token in the database\n"
    assert control.tokens.digests == (ids.digest(second["value"]),)


async def test_the_value_is_shown_once(ctl: Ctl, control: Control) -> None:
    made = await ctl("scim-token", "create")
    [value] = re.findall(r"\b\w{64}\b", made.out)
    assert control.tokens.digests == (ids.digest(value),)
    assert made.err == "The token is not shown again.\n"
    for form in ("table", "json", "name"):
        shown = await ctl("scim-token", "show", "-o", form)
        assert value not in shown.out
    told = json.loads((await ctl("scim-token", "show", "-o", "json")).out)
    assert list(told) == [
        "origin",
        "external",
        "file",
        "count",
        "fingerprints",
        "written_at",
        "stale",
        "enabled",
    ]
    assert (told["count"], told["external"], told["enabled"], told["stale"]) == (1, False, True, False)
    assert told["written_at"].endswith("Z")


async def test_what_the_number_of_tokens_does_not_allow(ctl: Ctl) -> None:
    assert (await ctl("scim-token", "rotate")).code == 6
    assert (await ctl("scim-token", "retire")).code == 6
    await ctl("scim-token", "create")
    assert (await ctl("scim-token", "create")).code == 6
    await ctl("scim-token", "rotate")
    again = await ctl("scim-token", "rotate", "-o", "json")
    assert (again.code, again.out) == (6, "")
    assert "retire the older one" in json.loads(again.err)["error"]["message"]


async def test_a_dry_run_shows_no_value_and_keeps_nothing(ctl: Ctl, control: Control) -> None:
    dry = json.loads((await ctl("scim-token", "create", "--dry-run", "-o", "json")).out)
    assert (dry["value"], dry["outcome"], dry["count"]) == (None, "created", 0)
    said = await ctl("scim-token", "create", "--dry-run")
    assert said.out.startswith("dry run: created SCIM token in the database")
    assert control.tokens.digests == ()


async def test_a_token_from_elsewhere_is_left_alone(ctl: Ctl, control: Control) -> None:
    path = control.socket.parent / "scim-token"
    outside = TokenSource(True, path, ("v",), "environment SCIM_TOKEN", is_external=True)
    await control.keeper.configure(outside)
    refused = await ctl("scim-token", "rotate")
    assert refused.code == 6
    assert "scim_token is set by environment SCIM_TOKEN; change it there" in refused.err
    shown = await ctl("scim-token", "show")
    assert "environment SCIM_TOKEN" in shown.out
    await control.keeper.configure(TokenSource(False, path))
    off = await ctl("scim-token", "create")
    assert "SCIM is off: set scim_enabled = true" in off.err


async def test_a_file_changed_by_hand_is_told_of(ctl: Ctl, control: Control) -> None:
    await ctl("scim-token", "create")
    (control.socket.parent / "scim-token").write_text("other\n")
    assert "reload the daemon" in (await ctl("scim-token", "show")).err
