"""gatewayctl setup."""

import json

from gatewayd.accounts.sign_in import SignInClient
from tests.fakes.daemons.control_socket import Control, Ctl

ARGUMENTS = ("setup", "--email", "root@example.org", "--name", "Root")


async def test_the_key_works_at_once_and_a_second_run_is_refused(ctl: Ctl, control: Control) -> None:
    dry = await ctl(*ARGUMENTS, "--dry-run", "-o", "json")
    assert json.loads(dry.out)["key"] is None
    assert await control.accounts.users.count() == 0
    made = await ctl(*ARGUMENTS, "-o", "json")
    shown = json.loads(made.out)
    assert list(shown) == [
        "user_id",
        "email",
        "name",
        "group",
        "key_name",
        "key",
        "password",
        "dry_run",
    ]
    actor = await control.accounts.authenticator.authenticate(shown["key"], "GET", "/api/models")
    assert actor.is_admin
    user = await control.accounts.sign_in.sign_in("root@example.org", shown["password"], SignInClient("peer"))
    assert user.id == shown["user_id"]
    again = await ctl(*ARGUMENTS)
    assert (again.code, again.out) == (6, "")


async def test_with_a_given_password(ctl: Ctl, control: Control) -> None:
    made = await ctl(*ARGUMENTS, "--password-file", "-", "--group", "keys", stdin="correct horse\n")
    assert "as given" in made.out
    assert "not shown again" in made.err
    assert await control.accounts.sign_in.sign_in("root@example.org", "correct horse", SignInClient("peer"))
    group = await control.accounts.groups.resolve("keys")
    assert await control.accounts.groups.count_members([group]) == {group.id: 1}


async def test_name_output_is_the_key_alone(ctl: Ctl) -> None:
    made = await ctl(*ARGUMENTS, "-o", "name")
    assert made.out.startswith("sk-")
    assert made.err == ""


async def test_needs_an_address_and_a_name(ctl: Ctl) -> None:
    assert (await ctl("setup", "--email", "root@example.org")).code == 2
    assert (await ctl("setup", "--email", "nonsense", "--name", "Root")).code == 1
