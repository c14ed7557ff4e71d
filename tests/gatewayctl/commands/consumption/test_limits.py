"""gatewayctl limit."""

import json
from typing import Any

import pytest

from gatewayd.accounts.groups import NewGroup
from gatewayd.limits.records import LimitSubject
from tests.fakes.daemons.control_socket import Control, Ctl

ANN = "ann@example.org"


@pytest.fixture
async def ann(control: Control) -> str:
    return (await control.accounts.add_user("ann")).id


async def made(ctl: Ctl, *arguments: str) -> dict[str, Any]:
    done = await ctl("limit", "set", *arguments, "-o", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


async def test_set_changes_only_what_is_given(ctl: Ctl, control: Control, ann: str) -> None:
    first = await made(
        ctl, "--user", ANN, "--parallel", "2", "--budget", "10usd/month", "--budget", "5tokens/day"
    )
    assert (first["outcome"], first["subject"], first["subject_id"], first["name"]) == (
        "created",
        "user",
        ann,
        ANN,
    )
    assert first["budgets"] == ["10usd/month", "5tokens/day"]
    second = await made(
        ctl, "--user", ANN, "--parallel", "off", "--requests-per-minute", "60", "--warn-at", "80"
    )
    assert (second["outcome"], second["id"], second["parallel"]) == ("changed", first["id"], None)
    assert (second["requests_per_minute"], second["budgets"]) == (60, first["budgets"])
    assert (await made(ctl, "--user", ANN, "--warn-at", "80"))["outcome"] == "unchanged"
    assert (await made(ctl, "--user", ANN, "--budget", "off"))["budgets"] == []
    assert [pot.requests for pot in control.limits.admission.book.plan("", ann, (), "m", "").pots] == [60]


async def test_subjects(ctl: Ctl, control: Control) -> None:
    await control.accounts.groups.create(NewGroup("staff"))
    subjects = [
        (["--default"], LimitSubject.DEFAULT, ""),
        (["--all"], LimitSubject.TOTAL, ""),
        (["--model", "m"], LimitSubject.TOTAL, "m"),
        (["--default", "--model", "m"], LimitSubject.DEFAULT, "m"),
        (["--group", "staff"], LimitSubject.GROUP, ""),
        (["--group", "staff", "--each-member"], LimitSubject.MEMBER, ""),
    ]
    for arguments, _, _ in subjects:
        await made(ctl, *arguments, "--parallel", "1")
    rules = await control.limits.limits.list()
    assert [(rule.subject, rule.model) for rule in rules] == [each[1:] for each in subjects]


async def test_a_dry_run_changes_nothing(ctl: Ctl, control: Control) -> None:
    told = await ctl("limit", "set", "--default", "--parallel", "1", "--dry-run")
    assert told.out.startswith("dry run: created limit ")
    assert control.limits.admission.book.is_empty


BAD = (
    (["--all"], 2, "nothing to limit"),
    (["--parallel", "1"], 2, "give one of"),
    (["--all", "--user", ANN, "--parallel", "1"], 2, "give one of"),
    (["--default", "--key", "k", "--parallel", "1"], 2, "give one of"),
    (["--default", "--each-member", "--parallel", "1"], 2, "needs --group"),
    (["--default", "--parallel", "-1"], 2, "parallel"),
    (["--default", "--parallel", "many"], 2, "parallel"),
    (["--default", "--parallel", "9" * 99], 2, "parallel"),
    (["--default", "--warn-at", "100", "--parallel", "1"], 1, "warn_percent"),
    (["--default", "--budget", "ten"], 1, "budget"),
    (["--default", "--budget", "1usd/day", "--budget", "2usd/day"], 1, "budgets"),
    (["--default", "--parallel", "off"], 1, "limits nothing"),
    (["--user", "nobody@example.org", "--parallel", "1"], 5, "nobody@example.org"),
    (["--group", "none", "--parallel", "1"], 5, "none"),
    (["--key", "none", "--parallel", "1"], 5, "none"),
    (["--default", "--storage", "5 G"], 2, "cannot read the size"),
    (["--default", "--storage", "2000000T"], 1, "storage_bytes"),
    (["--default", "--model", "m", "--storage", "5G"], 1, "storage_bytes"),
)


async def test_bad_limits_are_refused(ctl: Ctl) -> None:
    for arguments, code, words in BAD:
        done = await ctl("limit", "set", *arguments)
        assert (done.code, words in done.err, done.out) == (code, True, ""), (arguments, done.err)


async def test_a_quota_of_storage(ctl: Ctl, control: Control, ann: str) -> None:
    rule = await made(ctl, "--default", "--storage", "5K")
    assert (rule["storage_bytes"], rule["parallel"]) == (5120, None)
    control.limits.sizes.files = [(ann, 120), ("another", 7)]
    shown = await ctl("limit", "show", rule["id"], "--user", ANN)
    assert "storage_bytes: 120 used, 5000 left" in shown.out
    assert "120 bytes, 5000 left" in (await ctl("user", "show", ANN)).out
    assert (await made(ctl, "--user", ANN, "--storage", "off"))["storage_bytes"] is None
    person = json.loads((await ctl("user", "show", ANN, "-o", "json")).out)
    assert (person["storage_bytes"], person["storage_left_bytes"]) == (120, None)


async def test_list_show_and_remove(ctl: Ctl, control: Control, ann: str) -> None:
    rule = await made(ctl, "--default", "--requests-per-minute", "5", "--budget", "10usd/month")
    await control.limits.rates.take(control.limits.admission.book.plan("", ann, (), "m", "").pots, 0)
    listed = json.loads((await ctl("limit", "list", "-o", "json")).out)
    assert [each["id"] for each in listed] == [rule["id"]]
    assert (await ctl("limit", "list", "-o", "name")).out == f"{rule['id']}\n"
    shown = json.loads((await ctl("limit", "show", rule["id"], "--user", ANN, "-o", "json")).out)
    [requests, budget] = shown["uses"]
    assert requests == {
        "what": "requests_per_minute",
        "used": "1",
        "reserved": "",
        "left": "4",
        "resets_at": None,
    }
    assert (budget["what"], budget["left"], budget["used"]) == ("10usd/month", "10usd", "0usd")
    assert budget["resets_at"].endswith("-01T00:00:00Z")
    assert (
        "requests_per_minute: 1 used, 4 left" in (await ctl("limit", "show", rule["id"], "--user", ANN)).out
    )
    assert json.loads((await ctl("limit", "show", rule["id"], "-o", "json")).out)["uses"] == []
    assert (await ctl("limit", "remove", rule["id"], "--yes")).code == 0
    assert (await ctl("limit", "show", rule["id"])).code == 5
    assert (await ctl("limit", "remove", rule["id"], "--yes")).code == 5
    assert control.limits.admission.book.is_empty
