"""Tests for gatewayd.assembly.sign_in."""

import socket
from contextlib import AsyncExitStack
from ipaddress import ip_network
from typing import Any

import pytest

from gatewayd import extras
from gatewayd.assembly import sign_in as module
from gatewayd.assembly.identity import IdentitySwitches
from gatewayd.assembly.sign_in import (
    check_header_sockets,
    directory_rules,
    make_client,
    make_directory,
    make_trusted_headers,
)
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import Settings
from tests.fakes.accounts.services import Accounts

BASE = {"enable_ldap": True, "ldap_search_base": "dc=x"}


def settings_of(**values: Any) -> Settings:
    return Settings(layers=()).model_copy(update=values)


async def test_there_is_no_directory_by_default_and_none_without_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accounts = Accounts()
    async with AsyncExitStack() as stack:
        assert make_directory(settings_of(), accounts.external, accounts.sign_in_guard, stack) is None
        monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(GatewayError, match=r"gatewayd\[ldap\]") as caught:
            make_directory(settings_of(**BASE), accounts.external, accounts.sign_in_guard, stack)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("values", "address", "starts_tls"),
    [
        ({}, "ldap://localhost:389", True),
        ({"ldap_server_port": 636}, "ldaps://localhost:636", False),
        ({"ldap_use_tls": False}, "ldap://localhost:389", False),
        ({"ldap_use_tls": False, "ldap_server_port": 636}, "ldap://localhost:636", False),
    ],
)
async def test_the_port_says_how_the_connection_is_encrypted(
    values: dict[str, Any], address: str, starts_tls: bool
) -> None:
    pytest.importorskip("ldap")
    async with AsyncExitStack() as stack:
        client: Any = make_client(settings_of(**BASE, **values), stack)
        assert client._options.address == address
        assert (client._options.security.value == "starttls") is starts_tls


def test_a_directory_joins_no_account_unless_it_is_allowed() -> None:
    rules = directory_rules(settings_of(**BASE))
    assert (rules.sign_up, rules.merge_by_email, rules.joins_admins) == (True, False, False)
    assert directory_rules(settings_of(ldap_merge_accounts_by_email=True)).merge_by_email
    managed = directory_rules(settings_of(enable_ldap_group_management=True)).groups
    assert (managed.is_managed, managed.may_create) == (True, False)


def test_trusted_headers_come_from_this_machine_or_named_networks() -> None:
    assert make_trusted_headers(settings_of()) is None
    own = make_trusted_headers(settings_of(webui_auth_trusted_email_header="x-email"))
    assert own is not None
    assert own._networks == module.LOOPBACK
    named = settings_of(
        webui_auth_trusted_email_header="x-email", trusted_header_networks=(ip_network("10.0.0.0/8"),)
    )
    found = make_trusted_headers(named)
    assert found is not None
    assert found._networks == (ip_network("10.0.0.0/8"),)


def test_a_given_socket_that_others_reach_needs_networks() -> None:
    trusting = settings_of(webui_auth_trusted_email_header="x-email")
    local = socket.create_server(("127.0.0.1", 0))
    everywhere = socket.create_server(("0.0.0.0", 0))
    unix, its_peer = socket.socketpair()
    with local, everywhere, unix, its_peer:
        check_header_sockets(trusting, [local, unix])
        check_header_sockets(settings_of(), [everywhere])
        networks = {"trusted_header_networks": (ip_network("10.0.0.0/8"),)}
        check_header_sockets(trusting.model_copy(update=networks), [everywhere])
        with pytest.raises(GatewayError, match="service manager") as caught:
            check_header_sockets(trusting, [local, everywhere])
    assert caught.value.param == "trusted_header_networks"


@pytest.mark.parametrize(
    ("other", "redirects"),
    [({}, True), ({"enable_ldap": True}, False), ({"webui_auth_trusted_email_header": "x-email"}, False)],
)
def test_only_a_single_way_in_is_taken_by_itself(other: dict[str, Any], redirects: bool) -> None:
    switches = IdentitySwitches()
    switches.configure(settings_of(oauth_auto_redirect=True, enable_login_form=False, **other))
    assert switches.redirects is redirects
