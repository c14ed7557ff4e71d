"""Sign-in by a directory and by trusted headers, from the settings."""

import importlib
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from gatewayd.accounts.directory.interfaces import Directory
from gatewayd.accounts.directory.sign_in import DirectorySignIn
from gatewayd.accounts.identity.external_accounts import ExternalAccounts
from gatewayd.accounts.identity.records import GroupRules, IdentityRules
from gatewayd.accounts.sign_in import SignInGuard
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.http.connections.admission import is_within
from gatewayd.http.trusted_headers import HeaderEncoding, HeaderNames, TrustedHeaders
from gatewayd.settings import Settings

LDAP_CLIENT_MODULE: Final = "gatewayd.upstream.directory.ldap_client"
LDAPS_PORT: Final = 636
LOOPBACK: Final[tuple[IPv4Network | IPv6Network, ...]] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
"""Networks of proxies on this machine: the default, as a listener elsewhere needs explicit ones."""


def make_directory(
    settings: Settings, external: ExternalAccounts, guard: SignInGuard, stack: AsyncExitStack
) -> DirectorySignIn | None:
    """Return the sign-in by the directory, None without one; raise not_configured without the extra."""
    if not settings.enable_ldap:
        return None
    if not is_installed(PackageExtra.LDAP):
        raise missing_extra_error("cannot use enable_ldap", PackageExtra.LDAP, param="enable_ldap")
    return DirectorySignIn(make_client(settings, stack), external.resolve, guard, directory_rules(settings))


def make_client(settings: Settings, stack: AsyncExitStack) -> Directory:
    """Return the LDAP client; its module needs the extra `ldap`."""
    module: Any = importlib.import_module(LDAP_CLIENT_MODULE)
    security = module.LdapSecurity.NONE
    if settings.ldap_use_tls:
        is_ldaps = settings.ldap_server_port == LDAPS_PORT
        security = module.LdapSecurity.LDAPS if is_ldaps else module.LdapSecurity.STARTTLS
    options = module.LdapOptions(
        host=settings.ldap_server_host,
        port=settings.ldap_server_port,
        search_base=settings.ldap_search_base,
        security=security,
        checks_certificate=settings.ldap_validate_cert,
        ca_file=settings.ldap_ca_cert_file,
        ciphers=settings.ldap_ciphers,
        app_dn=settings.ldap_app_dn,
        app_password=settings.ldap_app_password.get_secret_value(),
        search_filter=module.check_filter(settings.ldap_search_filters),
        name_attribute=settings.ldap_attribute_for_username,
        mail_attribute=settings.ldap_attribute_for_mail,
        group_attribute=settings.ldap_attribute_for_groups,
    )
    client = module.LdapDirectory(options)
    stack.callback(client.close)
    directory: Directory = client
    return directory


def directory_rules(settings: Settings) -> IdentityRules:
    """Return what the directory may do with accounts: it creates them, whatever sign-up is set to."""
    return IdentityRules(
        sign_up=True,
        merge_by_email=settings.ldap_merge_accounts_by_email,
        trust_email=True,
        groups=GroupRules(
            is_managed=settings.enable_ldap_group_management, may_create=settings.enable_ldap_group_creation
        ),
    )


def check_header_sockets(settings: Settings, sockets: Sequence[socket.socket]) -> None:
    """Raise not_configured if a socket of the service manager may be reached from elsewhere, while trusted
    headers are accepted from this machine only by default."""
    if not settings.webui_auth_trusted_email_header or settings.trusted_header_networks:
        return
    for given in sockets:
        if given.family in {socket.AF_INET, socket.AF_INET6} and not is_within(
            given.getsockname()[0], LOOPBACK
        ):
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot use webui_auth_trusted_email_header: everybody who reaches the socket of the service"
                " manager could send the header; set trusted_header_networks to the networks of the proxies",
                param="trusted_header_networks",
            )


def make_trusted_headers(settings: Settings) -> TrustedHeaders | None:
    """Return the reader of trusted headers, None without one."""
    names = HeaderNames(
        email=settings.webui_auth_trusted_email_header,
        name=settings.webui_auth_trusted_name_header,
        groups=settings.webui_auth_trusted_groups_header,
        role=settings.webui_auth_trusted_role_header,
    )
    if not names.email:
        return None
    networks = tuple(settings.trusted_header_networks) or LOOPBACK
    return TrustedHeaders(names, networks, HeaderEncoding(settings.trusted_header_encoding))
