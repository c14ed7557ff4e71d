"""`/v1/users`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.users import NewUser, PasswordChange, UserChange
from gatewayd.accounts.records import Role
from tests.fakes.daemons.control_socket import Control


async def test_a_user_from_first_to_last(control: Control) -> None:
    client = control.client
    await control.accounts.add_user("root", role=Role.ADMIN)
    made = await control.call(
        client.call, routes.CREATE_USER, body=NewUser(email="A@Example.org", role="user")
    )
    assert (made.email, made.name, made.outcome, made.password) == (
        "a@example.org",
        "A@Example.org",
        "created",
        None,
    )
    changed = await control.call(
        client.call, routes.CHANGE_USER, made.id, body=UserChange(name="Ann", active=False)
    )
    assert (changed.name, changed.active, changed.outcome) == ("Ann", False, "changed")
    same = await control.call(client.call, routes.CHANGE_USER, "a@EXAMPLE.org", body=UserChange(name="Ann"))
    assert same.outcome == "unchanged"
    removed = await control.call(client.call, routes.REMOVE_USER, made.id)
    assert (removed.outcome, removed.name) == ("removed", "Ann")
    listed = await control.call(client.call, routes.LIST_USERS)
    assert (listed.total, [user.email for user in listed.users]) == (1, ["root@example.org"])


async def test_groups_are_shown_by_name(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    await control.accounts.grant_keys(ann)
    shown = await control.call(control.client.call, routes.GET_USER, ann.id)
    assert shown.groups == ["key holders"]


async def test_ensure_leaves_what_is_not_given(control: Control) -> None:
    root = await control.accounts.add_user("root", role=Role.ADMIN)
    same = await control.call(control.client.call, routes.ENSURE_USER, body=NewUser(email=root.email))
    assert (same.outcome, same.role, same.name) == ("unchanged", "admin", "root")
    with pytest.raises(CommandError, match="a generated password"):
        await control.call(
            control.client.call, routes.ENSURE_USER, body=NewUser(email=root.email, generate_password=True)
        )


async def test_made_up_passwords_are_told_once_and_not_in_a_dry_run(control: Control) -> None:
    client, accounts = control.client, control.accounts
    ann = await accounts.add_user("ann")
    dry = await control.call(
        client.call, routes.SET_PASSWORD, ann.id, body=PasswordChange(generate_password=True), dry_run=True
    )
    assert dry.password is None
    assert await accounts.users_store.find_password_hash(ann.id) is None
    made = await control.call(
        client.call, routes.SET_PASSWORD, ann.id, body=PasswordChange(generate_password=True)
    )
    assert len(made.password) >= 16
    assert await accounts.users_store.find_password_hash(ann.id) == f"hash:{made.password}"
    for bad in (PasswordChange(), PasswordChange(password="x" * 12, generate_password=True)):
        with pytest.raises(CommandError) as caught:
            await control.call(client.call, routes.SET_PASSWORD, ann.id, body=bad)
        assert caught.value.kind == "invalid_request"


async def test_a_dry_run_tells_nobody(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    control.accounts.heard.clear()
    await control.call(
        control.client.call, routes.CHANGE_USER, ann.id, body=UserChange(role="admin"), dry_run=True
    )
    assert control.accounts.heard == []
    assert (await control.accounts.users.get(ann.id)).role is Role.USER
