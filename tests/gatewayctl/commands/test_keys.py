"""gatewayctl key."""

import json

import pytest

from tests.fakes.accounts.services import NOON
from tests.fakes.daemons.control_socket import Control, Ctl

ANN = "ann@example.org"


@pytest.fixture
async def holder(control: Control) -> None:
    await control.accounts.grant_keys(await control.accounts.add_user("ann"))


@pytest.mark.usefixtures("holder")
async def test_create_prints_the_value_once(ctl: Ctl, control: Control) -> None:
    made = await ctl("key", "create", ANN, "laptop", "-o", "name")
    value = made.out.strip()
    assert value.startswith("sk-")
    actor = await control.accounts.authenticator.authenticate(value, "GET", "/api/models")
    assert actor.user.email == ANN
    listed = await ctl("key", "list", "-o", "json")
    assert value not in listed.out
    key = json.loads(listed.out)[0]
    assert list(key) == [
        "id",
        "name",
        "user_id",
        "user",
        "prefix",
        "expires_at",
        "last_used_at",
        "created_at",
    ]
    assert (key["name"], key["user"], key["expires_at"]) == ("laptop", ANN, None)
    assert value.startswith(key["prefix"])


@pytest.mark.usefixtures("holder")
async def test_create_for_people_tells_that_it_is_not_shown_again(ctl: Ctl) -> None:
    made = await ctl("key", "create", ANN, "laptop")
    assert "sk-" in made.out
    assert "not shown again" in made.err
    again = await ctl("key", "create", ANN, "laptop", "-o", "json")
    assert (again.code, again.out) == (6, "")
    assert json.loads(again.err)["error"]["kind"] == "conflict"


@pytest.mark.usefixtures("holder")
async def test_expiry(ctl: Ctl, control: Control) -> None:
    made = await ctl("key", "create", ANN, "short", "--expires-in", "2h", "-o", "json")
    key = await control.accounts.keys.get(json.loads(made.out)["id"])
    assert key.expires_at == control.accounts.time + 7200 > NOON
    assert (await ctl("key", "create", ANN, "bad", "--expires-in", "soon")).code == 2


@pytest.mark.usefixtures("holder")
async def test_dry_run_issues_nothing(ctl: Ctl) -> None:
    dry = await ctl("key", "create", ANN, "laptop", "--dry-run", "-o", "json")
    assert json.loads(dry.out)["value"] is None
    assert (await ctl("key", "create", ANN, "laptop", "--dry-run")).out.startswith("dry run: created key ")
    assert (await ctl("key", "list", "-o", "name")).out == ""


@pytest.mark.usefixtures("holder")
async def test_revoke_ends_the_key(ctl: Ctl) -> None:
    made = json.loads((await ctl("key", "create", ANN, "laptop", "-o", "json")).out)
    assert (await ctl("key", "revoke", made["id"])).code == 2
    assert (await ctl("key", "revoke", made["id"], "--yes")).out == f"removed key {made['id']}\n"
    assert (await ctl("key", "list", "--user", ANN, "-o", "name")).out == ""
    assert (await ctl("key", "revoke", made["id"], "--yes")).code == 5


async def test_why_says_what_is_missing(ctl: Ctl, control: Control) -> None:
    await control.accounts.add_user("ann")
    refused = await ctl("key", "create", ANN, "laptop")
    assert (refused.code, refused.out) == (4, "")
    why = json.loads((await ctl("key", "why", ANN, "-o", "json")).out)
    assert why["allowed"] is False
    assert len(why["missing"]) == 2
    assert (await ctl("key", "why", ANN, "-o", "name")).out == "refused\n"
    await control.accounts.grant_keys(await control.accounts.users.resolve(ANN))
    assert (await ctl("key", "why", ANN, "-o", "name")).out == "allowed\n"
    assert (await ctl("key", "why", "zoe@example.org")).code == 5
