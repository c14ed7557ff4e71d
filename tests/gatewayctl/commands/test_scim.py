"""gatewayctl scim."""

import io
import json
from pathlib import Path

import pytest

from gatewayd.scim.request_log import LoggedRequest
from tests.fakes.accounts.services import NOON
from tests.fakes.daemons.control_socket import Control, Ctl, Terminal

NOWHERE = "http://127.0.0.1:9"


async def test_status(ctl: Ctl, control: Control) -> None:
    shown = await ctl("scim", "status")
    assert (shown.code, shown.err) == (0, "")
    assert "okta" in shown.out
    control.activity.add(LoggedRequest(NOON, "GET", "/api/v1/scim/v2/Me", 501, "::1", "r1", "cannot do this"))
    shown = await ctl("scim", "status")
    assert "GET /api/v1/scim/v2/Me 501 cannot do this" in shown.out
    assert (await ctl("scim", "status", "-o", "name")).out == "on\n"
    told = json.loads((await ctl("scim", "status", "-o", "json")).out)
    assert told["last_refused"]["status"] == 501


async def test_log(ctl: Ctl, control: Control) -> None:
    assert json.loads((await ctl("scim", "log", "-o", "json")).out) == []
    for number in range(3):
        control.activity.add(LoggedRequest(NOON, "GET", "/Users", 200, "::1", f"r{number}"))
    assert (await ctl("scim", "log", "-o", "name")).out == "r2\nr1\nr0\n"
    assert (await ctl("scim", "log", "--limit", "1", "-o", "name")).out == "r2\n"
    assert (await ctl("scim", "log", "--limit", "0")).code == 2


async def test_check_tells_each_step_and_exits_with_1_when_one_failed(ctl: Ctl) -> None:
    checked = await ctl("scim", "check", NOWHERE, stdin="token")
    assert checked.code == 1
    lines = checked.out.splitlines()
    assert lines[0].split() == ["STEP", "RESULT", "DETAIL"]
    assert "failed" in lines[1]
    assert "nobody listens on 127.0.0.1:9" in lines[1]
    assert all("skipped" in line for line in lines[2:])
    rows = json.loads((await ctl("scim", "check", NOWHERE, "--write", "-o", "json", stdin="t")).out)
    assert len(rows) > len(lines) - 1
    assert list(rows[0]) == ["step", "result", "detail", "advice"]


async def test_the_token_is_read_and_never_given(ctl: Ctl, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("new\nold\n")
    assert (await ctl("scim", "check", NOWHERE, "--token-file", str(path))).code == 1
    for stdin in (Terminal(), "", " \n", "caf\u00e9"):
        refused = await ctl("scim", "check", NOWHERE, stdin=stdin)
        assert (refused.code, refused.out) == (2, "")
        assert "--token-file" in refused.err
    assert (await ctl("scim", "check", NOWHERE, "--token-file", str(tmp_path / "no"))).code == 2


@pytest.mark.parametrize(
    "url", ["chat.example.org", "ftp://x", "https://u:p@h", "https://h:x", "https://h?a=1"]
)
async def test_bad_addresses(ctl: Ctl, url: str) -> None:
    refused = await ctl("scim", "check", url, stdin=io.StringIO("t"))
    assert refused.code == 2
    assert refused.err.startswith("gatewayctl: cannot use the address")


async def test_a_bad_file_of_certificates(ctl: Ctl, tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("nonsense")
    for path in (bad, tmp_path / "no"):
        refused = await ctl("scim", "check", "https://127.0.0.1:9", "--ca", str(path), stdin="t")
        assert refused.code == 2
        assert "cannot read --ca" in refused.err
