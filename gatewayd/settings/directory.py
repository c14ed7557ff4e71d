"""Settings of sign-in by a directory (LDAP) and by the headers of a proxy."""

from typing import Annotated, Literal

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import ACCOUNTS, restart, setting


class DirectoryFields(BaseSettings):
    """The settings of LDAP and of trusted headers."""

    enable_ldap: types.Switch = setting(
        restart(ACCOUNTS), False, "Whether people sign in with the password of an LDAP directory."
    )
    ldap_server_label: types.Line = setting(
        restart(ACCOUNTS), "LDAP", "Name of the directory on the sign-in page.", max_length=128
    )
    ldap_server_host: types.Line = setting(
        restart(ACCOUNTS),
        "localhost",
        "Host name of the directory, as its certificate has it.",
        min_length=1,
        max_length=255,
    )
    ldap_server_port: types.Whole = setting(
        restart(ACCOUNTS),
        389,
        "Port of the directory; 636 is LDAP over TLS, others use StartTLS.",
        ge=1,
        le=65535,
    )
    ldap_use_tls: types.Switch = setting(
        restart(ACCOUNTS),
        True,
        "Whether the connection to the directory is encrypted before anything is sent.",
    )
    ldap_validate_cert: types.Switch = setting(
        restart(ACCOUNTS), True, "Whether the certificate of the directory is checked."
    )
    ldap_ca_cert_file: types.OptionalFile = setting(
        restart(ACCOUNTS),
        None,
        "File with the certificates of authorities for the directory; those of the system when empty.",
    )
    ldap_ciphers: types.Line = setting(
        restart(ACCOUNTS),
        "",
        "Ciphers for the directory, in the words of the TLS library of libldap; its own choice when empty.",
    )
    ldap_app_dn: types.Line = setting(
        restart(ACCOUNTS), "", "DN that searches the directory; an anonymous search when empty."
    )
    ldap_app_password: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(ACCOUNTS), SecretStr(""), "Password of ldap_app_dn."
    )
    ldap_search_base: types.Line = setting(
        restart(ACCOUNTS), "", "DN below which people are searched, such as ou=people,dc=example,dc=org."
    )
    ldap_search_filters: types.Line = setting(
        restart(ACCOUNTS),
        "",
        "Filter that an entry must match as well, such as (memberOf=cn=chat,dc=example,dc=org).",
        "ldap_search_filter",
    )
    ldap_attribute_for_username: types.Line = setting(
        restart(ACCOUNTS), "uid", "Attribute with the name that people type.", min_length=1, max_length=64
    )
    ldap_attribute_for_mail: types.Line = setting(
        restart(ACCOUNTS), "mail", "Attribute with the e-mail address.", min_length=1, max_length=64
    )
    ldap_attribute_for_groups: types.Line = setting(
        restart(ACCOUNTS), "memberOf", "Attribute with the DNs of groups.", min_length=1, max_length=64
    )
    enable_ldap_group_management: types.Switch = setting(
        restart(ACCOUNTS), False, "Whether a sign-in by LDAP sets the groups of the account."
    )
    enable_ldap_group_creation: types.Switch = setting(
        restart(ACCOUNTS), False, "Whether enable_ldap_group_management creates groups that do not exist."
    )
    ldap_merge_accounts_by_email: types.Switch = setting(
        restart(ACCOUNTS),
        False,
        "Whether a person of the directory may take over the account with their e-mail address; never that of"
        " an administrator.",
    )
    webui_auth_trusted_email_header: types.HeaderNameOrEmpty = setting(
        restart(ACCOUNTS),
        "",
        "Header with the e-mail address of the person whom a proxy has authenticated; none when empty.",
    )
    webui_auth_trusted_name_header: types.HeaderNameOrEmpty = setting(
        restart(ACCOUNTS), "", "Header with the name of that person, for a new account."
    )
    webui_auth_trusted_groups_header: types.HeaderNameOrEmpty = setting(
        restart(ACCOUNTS), "", "Header with the groups of that person, separated by commas."
    )
    webui_auth_trusted_role_header: types.HeaderNameOrEmpty = setting(
        restart(ACCOUNTS), "", "Header with the role of that person: admin or user."
    )
    trusted_header_networks: types.Networks = setting(
        restart(ACCOUNTS),
        (),
        "Networks of the proxies from which the trusted headers are accepted; the loopback addresses when"
        " empty, if host is one.",
    )
    trusted_header_encoding: Annotated[
        Literal["percent", "rfc2047", "plain"], types.ExpectedValue('"percent", "rfc2047" or "plain"')
    ] = setting(
        restart(ACCOUNTS), "percent", "Encoding of the names of people and groups in the trusted headers."
    )
