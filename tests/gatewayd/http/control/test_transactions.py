"""Dry runs, the audit line, and the small readers of the query."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from gatewayctl.wire import routes
from gatewayctl.wire.collections import NewCollection
from gatewayctl.wire.groups import GroupMembers, NewGroup
from gatewayctl.wire.models import AccessChange
from gatewayctl.wire.permissions import PermissionChange
from gatewayctl.wire.settings import SettingChange
from gatewayctl.wire.users import NewUser as NewControlUser
from gatewayctl.wire.users import PasswordChange, UserChange
from gatewayd.accounts.records import NewUser, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.context import REQUEST_ID
from gatewayd.http.control.peer import PEER, SocketPeer
from gatewayd.http.control.transactions import (
    MAX_PAGE_SIZE,
    WriteTransactions,
    author,
    find_count,
    find_page,
    is_set,
    timestamp,
)
from gatewayd.transactions import after_commit
from tests.fakes.accounts.services import Accounts
from tests.fakes.daemons.control_socket import Control


def request_for(query: str = "") -> Any:
    request = make_mocked_request("POST", f"/v1/users{query}")
    request[PEER] = SocketPeer(1, 0, 0)
    request[REQUEST_ID] = "r1"
    return request


async def add(accounts: Accounts, writes: WriteTransactions, query: str, **more: Any) -> bool:
    async with writes.block(request_for(query), "user create", "a@b.c", **more) as dry_run:
        await accounts.users.create(NewUser("a@b.c", "a"))
        return dry_run


@pytest.mark.parametrize("more", [{}, {"alone": "users"}])
async def test_a_change_is_kept_and_audited(
    caplog: pytest.LogCaptureFixture, more: Mapping[str, Any]
) -> None:
    accounts = Accounts()
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        assert await add(accounts, WriteTransactions(accounts.commits), "", **more) is False
    assert await accounts.users.count() == 1
    [line] = caplog.records
    told = vars(line)
    assert line.getMessage() == "user create"
    assert (told["by"], told["target"], told["request_id"]) == ("root", "a@b.c", "r1")


async def test_lines_tell_the_new_values_and_no_secret(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    client, call = control.client, control.call
    ann = await control.accounts.add_user("ann", Role.ADMIN)
    grants = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
    rights = {"features.api_keys": True}
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        await call(
            client.call, routes.CREATE_USER, body=NewControlUser(email="bob@x.org", password="hush-canary")
        )
        await call(client.call, routes.CHANGE_USER, ann.id, body=UserChange(role="admin", name="Ann"))
        await call(client.call, routes.SET_PASSWORD, ann.id, body=PasswordChange(password="hush-canary"))
        await call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
        await call(client.call, routes.ADD_MEMBERS, "g", body=GroupMembers(users=["bob@x.org"]))
        await call(client.call, routes.SET_PERMISSIONS, body=PermissionChange(values=rights))
        await call(client.call, routes.SET_PERMISSIONS, body=PermissionChange(values=rights, group="g"))
        await call(client.call, routes.SET_SETTINGS, body=SettingChange(values={"ENABLE_SIGNUP": True}))
        await call(client.call, routes.GRANT_MODEL, body=AccessChange(model="alpha", everyone=True))
        await call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="Law", readers=["*"]))
    told = [(line.getMessage(), vars(line)["subject"], vars(line)["values"]) for line in caplog.records]
    collection = told.pop()
    assert told == [
        ("user create", "bob@x.org", {"name": "bob@x.org", "role": "user"}),
        ("user change", ann.email, {"role": "admin", "name": "Ann"}),
        ("user password", ann.email, {"password_is_set": True}),
        ("group create", "g", None),
        ("group add-member", "g", {"added": ["bob@x.org"]}),
        ("permission set", "default permissions", rights),
        ("permission set", "g", rights),
        ("setting set", "settings", {"ENABLE_SIGNUP": True}),
        ("model grant", "alpha", {"access_grants": grants}),
    ]
    assert collection[:2] == ("collection create", "Law")
    assert collection[2]["access_grants"] == grants
    assert "hush-canary" not in caplog.text + str([vars(line) for line in caplog.records])


async def test_a_dry_run_is_neither_kept_nor_audited(caplog: pytest.LogCaptureFixture) -> None:
    accounts = Accounts()
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        assert await add(accounts, WriteTransactions(accounts.commits), "?dry_run=true") is True
    assert await accounts.users.count() == 0
    assert caplog.records == []


async def test_a_failure_is_neither_kept_nor_audited(caplog: pytest.LogCaptureFixture) -> None:
    accounts, called = Accounts(), []
    writes = WriteTransactions(accounts.commits)

    async def fail() -> None:
        async with writes.block(request_for(), "user create", "x"):
            await accounts.users.create(NewUser("a@b.c", "a"))
            after_commit(lambda: called.append(1))
            raise GatewayError(ErrorKind.CONFLICT, "cannot")

    with caplog.at_level(logging.INFO, "gatewayd.audit"), pytest.raises(GatewayError):
        await fail()
    assert await accounts.users.count() == 0
    assert (caplog.records, called) == ([], [])


def test_authors_are_unix_users() -> None:
    assert author(request_for()) == "control:root"


def test_switches_of_the_query() -> None:
    assert is_set(request_for("?x=true"), "x")
    assert not is_set(request_for("?x=false"), "x")
    assert not is_set(request_for(), "x")
    with pytest.raises(GatewayError) as caught:
        is_set(request_for("?x=1"), "x")
    assert caught.value.param == "x"


def test_counts_of_the_query() -> None:
    assert find_count(request_for("?n=12"), "n") == 12
    assert find_count(request_for(), "n") is None
    for bad in ("0", "-1", "x", "", "1.5", "9999999999", "%D9%A3"):
        with pytest.raises(GatewayError):
            find_count(request_for(f"?n={bad}"), "n")


def test_timestamps_are_rfc_3339_in_utc() -> None:
    assert timestamp(1_700_000_000) == "2023-11-14T22:13:20Z"
    assert timestamp(0) is timestamp(None) is None
    assert timestamp(253_402_300_799) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (0, MAX_PAGE_SIZE)),
        ("?limit=5", (0, 5)),
        ("?offset=0&limit=1000000", (0, MAX_PAGE_SIZE)),
        ("?offset=12&limit=3", (12, 3)),
    ],
)
def test_pages_have_a_longest_length(query: str, expected: tuple[int, int]) -> None:
    assert find_page(request_for(query)) == expected


@pytest.mark.parametrize("value", ["-1", "x", "", "1" * 10, "٣"])
def test_offsets_are_numbers(value: str) -> None:
    with pytest.raises(GatewayError) as caught:
        find_page(request_for(f"?offset={value}"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "offset")
