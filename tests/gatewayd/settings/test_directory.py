"""Tests for gatewayd.settings.directory."""

from collections.abc import Callable

import pytest

from gatewayd.settings import Settings
from gatewayd.settings.settings_model import Settings as Model

Load = Callable[..., Settings]


def test_nothing_is_on_by_default_and_the_names_are_those_of_open_webui() -> None:
    settings = Model()
    assert not settings.enable_ldap
    assert (settings.ldap_server_port, settings.ldap_use_tls, settings.ldap_validate_cert) == (
        389,
        True,
        True,
    )
    assert (settings.ldap_attribute_for_username, settings.ldap_attribute_for_mail) == ("uid", "mail")
    assert settings.webui_auth_trusted_email_header == ""
    assert not settings.ldap_merge_accounts_by_email


def test_both_names_of_the_filter_are_read(load_text: Load) -> None:
    assert load_text("ldap_search_filter = '(a=b)'").ldap_search_filters == "(a=b)"


def test_two_headers_of_one_folded_name_are_refused(problems: Callable[..., list[str]]) -> None:
    found = problems(
        "webui_auth_trusted_email_header = 'X-User'\nwebui_auth_trusted_name_header = 'x_user'\n"
    )
    assert len(found) == 2
    assert all("has another meaning" in each for each in found)


@pytest.mark.parametrize("name", ["a b", "a:b", "é"])
def test_what_is_no_header_name(problems: Callable[..., list[str]], name: str) -> None:
    assert "webui_auth_trusted_email_header" in problems(f"webui_auth_trusted_email_header = '{name}'")[0]


def test_networks_allow_a_public_listener(load_text: Load) -> None:
    text = "webui_auth_trusted_email_header = 'X-Email'\nhost = '0.0.0.0'\n"
    text += "trusted_header_networks = '10.0.0.0/8'\n"
    assert load_text(text).webui_auth_trusted_email_header == "x-email"
