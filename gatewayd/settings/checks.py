"""Checks over several settings: contradictions, and combinations that deserve a warning."""

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

from gatewayd.settings.oauth import OAuthFields, problems_of
from gatewayd.settings.settings_model import Settings

FoundProblems = Iterator[tuple[str, str]]
"""Pairs of the setting at fault and the sentence with the reason."""


class SettingsCheck(NamedTuple):
    """A check and the settings that it reads; it is skipped if one of them is invalid."""

    reads: tuple[str, ...]
    run: Callable[[Settings], FoundProblems]


def _cookie(settings: Settings) -> FoundProblems:
    if settings.webui_auth_cookie_same_site == "none" and not settings.webui_auth_cookie_secure:
        yield (
            "webui_auth_cookie_same_site",
            'cannot use webui_auth_cookie_same_site = "none": browsers drop such a cookie unless '
            "webui_auth_cookie_secure is true",
        )


def _listeners(settings: Settings) -> FoundProblems:
    if not settings.host and settings.http_socket is None:
        yield "host", "cannot use an empty host without http_socket: nobody could reach the HTTP interface"
    if settings.http_socket is not None and settings.http_socket == settings.control_socket:
        yield "http_socket", "cannot use http_socket: it is the control socket"
    if (settings.tls_certificate is None) is not (settings.tls_key is None):
        given, absent = ("tls_certificate", "tls_key")[:: 1 if settings.tls_certificate else -1]
        yield given, f"cannot use {given}: {absent} is not set"


def _proxy_protocol(settings: Settings) -> FoundProblems:
    if settings.proxy_protocol and not settings.trusted_proxies:
        yield "proxy_protocol", "cannot use proxy_protocol: trusted_proxies is empty, so nobody could connect"


def _first_administrator(settings: Settings) -> FoundProblems:
    has_password = bool(settings.webui_admin_password.get_secret_value())
    if bool(settings.webui_admin_email) != has_password:
        given, absent = ("webui_admin_email", "webui_admin_password")[:: -1 if has_password else 1]
        yield given, f"cannot use {given}: {absent} is not set"


def _key_positions(settings: Settings) -> FoundProblems:
    urls, keys = len(settings.openai_api_base_urls), len(settings.openai_api_keys)
    if keys > max(urls, 1):
        yield (
            "openai_api_keys",
            f"cannot use {keys} openai_api_keys with {urls} openai_api_base_urls: each key needs an address",
        )


def _provider_names(settings: Settings) -> FoundProblems:
    counted = Counter(provider.name for provider in settings.all_providers())
    for name in (name for name, count in counted.items() if count > 1):
        yield "providers", f"cannot use the provider name {name!r} twice"
    for provider in settings.providers:
        problem = provider.find_problem()
        if problem is not None:
            yield "providers", problem


def _ruled_providers(settings: Settings) -> FoundProblems:
    known = {provider.name for _, provider in settings.listed_providers()}
    for name in (rule.provider for rule in settings.provider_rules):
        if name and name not in known:
            yield "provider_rules", f"no provider of the settings has the name {name!r} of provider_rules"


def _identity_providers(settings: Settings) -> FoundProblems:
    yield from problems_of(settings)


def _lone_redirect(settings: Settings) -> FoundProblems:
    if settings.oauth_auto_redirect and settings.enable_login_form and settings.enable_password_auth:
        yield "oauth_auto_redirect", "oauth_auto_redirect has no effect while enable_login_form is true"


def _builtin_model(settings: Settings) -> FoundProblems:
    path = settings.builtin_model_path
    if path is not None and not path.is_file():
        yield "builtin_model_path", f"cannot use builtin_model_path = {str(path)!r}: there is no such file"


def _page_module(settings: Settings) -> FoundProblems:
    path = settings.page_module
    if path is not None and not path.is_file():
        yield "page_module", f"cannot use page_module = {str(path)!r}: there is no such file"


def _cluster(settings: Settings) -> FoundProblems:
    if not settings.cluster:
        return
    if settings.database_location().startswith("sqlite"):
        yield (
            "cluster",
            "cannot use cluster with SQLite: several nodes need database_url with a PostgreSQL server",
        )
    if not settings.webui_secret_key.get_secret_value():
        yield (
            "cluster",
            "cannot use cluster without webui_secret_key: each node would make a secret of its own, and "
            "accept no session of the others",
        )
    if settings.file_store == "directory":
        yield (
            "cluster",
            'cannot use cluster with file_store = "directory": the files of a node are in its own data_dir, '
            "where no other finds them; set file_store to a directory that all nodes share, or to a bucket",
        )
    if not settings.redis_url.get_secret_value():
        yield (
            "cluster",
            "cannot use cluster without redis_url: events and tickets of a node would not reach the clients "
            "of the others",
        )


REQUIRED_TOGETHER: Final = (
    ("content_extraction_engine", "external", "external_document_loader_url"),
    ("rag_embedding_engine", "openai", "rag_openai_api_base_url"),
    ("rag_embedding_engine", "ollama", "rag_ollama_base_url"),
    ("rag_reranking_engine", "external", "rag_external_reranker_url"),
    ("rag_reranking_engine", "local", "rag_reranking_model"),
)
"""Engines, and the setting that each requires."""


def _engines(settings: Settings) -> FoundProblems:
    for name, engine, needed in REQUIRED_TOGETHER:
        if getattr(settings, name) == engine and not getattr(settings, needed):
            yield name, f'cannot use {name} = "{engine}": {needed} is not set'


def _overlap(settings: Settings) -> FoundProblems:
    if settings.chunk_overlap * 2 > settings.chunk_size:
        yield (
            "chunk_overlap",
            f"cannot use chunk_overlap = {settings.chunk_overlap}: "
            f"it is more than half of chunk_size, {settings.chunk_size}",
        )


def _directory(settings: Settings) -> FoundProblems:
    if settings.enable_ldap and not settings.ldap_search_base:
        yield "enable_ldap", "cannot use enable_ldap: ldap_search_base is not set"
    has_password = bool(settings.ldap_app_password.get_secret_value())
    if bool(settings.ldap_app_dn) != has_password:
        given, absent = ("ldap_app_dn", "ldap_app_password")[:: -1 if has_password else 1]
        yield given, f"cannot use {given}: {absent} is not set"


TRUSTED_HEADERS: Final = (
    "webui_auth_trusted_email_header",
    "webui_auth_trusted_name_header",
    "webui_auth_trusted_groups_header",
    "webui_auth_trusted_role_header",
)
CREDENTIAL_HEADERS: Final = frozenset({"authorization", "cookie", "host", "origin"})


def _trusted_headers(settings: Settings) -> FoundProblems:
    given = {name: getattr(settings, name) for name in TRUSTED_HEADERS if getattr(settings, name)}
    email = TRUSTED_HEADERS[0]
    if given and email not in given:
        yield from ((name, f"cannot use {name}: {email} is not set") for name in given)
    counted = Counter(header.replace("_", "-") for header in given.values())
    taken = CREDENTIAL_HEADERS | {settings.custom_api_key_header.replace("_", "-")}
    for name, header in given.items():
        if counted[header.replace("_", "-")] > 1 or header.replace("_", "-") in taken:
            yield name, f"cannot use {name} = {header!r}: the header has another meaning"
    if given and not settings.trusted_header_networks and not _is_loopback(settings.host):
        yield (
            email,
            f"cannot use {email}: everybody who reaches {settings.host} could send the header;"
            " set trusted_header_networks to the networks of the proxies",
        )


def _plain_directory(settings: Settings) -> FoundProblems:
    if settings.enable_ldap and not (settings.ldap_use_tls and settings.ldap_validate_cert):
        reason = "its certificate is not checked" if settings.ldap_use_tls else "ldap_use_tls is false"
        yield "ldap_use_tls", f"passwords can be read on the way to the directory: {reason}"


def _exposed_documentation(settings: Settings) -> FoundProblems:
    if settings.env == "dev" and not _is_loopback(settings.host):
        yield "env", f"/docs and /openapi.json are public on {settings.host}: env is dev"


def _initial_sign_up(settings: Settings) -> FoundProblems:
    if settings.enable_initial_admin_signup and not _is_loopback(settings.host):
        yield (
            "enable_initial_admin_signup",
            f"the first client on {settings.host} may become administrator: enable_initial_admin_signup"
            " is true",
        )


def _weak_scim_token(settings: Settings) -> FoundProblems:
    if settings.scim_enabled and any(len(token.get_secret_value()) < 32 for token in settings.scim_token):
        yield "scim_token", "scim_token is shorter than 32 characters, a random one is harder to guess"


def _unset_scim_provider(settings: Settings) -> FoundProblems:
    if settings.scim_enabled and not settings.scim_auth_provider:
        yield (
            "scim_auth_provider",
            "SCIM requests with an externalId are refused: scim_auth_provider is not set",
        )


def _allowed_endpoints(settings: Settings) -> FoundProblems:
    name = "api_keys_allowed_endpoints"
    if settings.enable_api_keys_endpoint_restrictions and not settings.api_keys_allowed_endpoints:
        yield (
            name,
            f"API keys cannot be used: enable_api_keys_endpoint_restrictions is true and {name} is empty",
        )
    for path in settings.api_keys_allowed_endpoints:
        if not path.startswith("/"):
            yield name, f"{path!r} in {name} matches no request: it does not begin with a slash"


def _is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; "" is a unix socket alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in {"", "localhost"}


PROBLEMS: Final = (
    SettingsCheck(("webui_auth_cookie_same_site", "webui_auth_cookie_secure"), _cookie),
    SettingsCheck(("host", "http_socket", "control_socket", "tls_certificate", "tls_key"), _listeners),
    SettingsCheck(("proxy_protocol", "trusted_proxies"), _proxy_protocol),
    SettingsCheck(("webui_admin_email", "webui_admin_password"), _first_administrator),
    SettingsCheck(("openai_api_base_urls", "openai_api_keys"), _key_positions),
    SettingsCheck(
        ("providers", "openai_api_base_urls", "openai_api_keys", "ollama_base_urls"), _provider_names
    ),
    SettingsCheck(tuple(OAuthFields.model_fields), _identity_providers),
    SettingsCheck(
        ("cluster", "database_url", "data_dir", "webui_secret_key", "file_store", "redis_url"), _cluster
    ),
    SettingsCheck(("builtin_model_path",), _builtin_model),
    SettingsCheck(("page_module",), _page_module),
    SettingsCheck(tuple({name for row in REQUIRED_TOGETHER for name in (row[0], row[2])}), _engines),
    SettingsCheck(("chunk_size", "chunk_overlap"), _overlap),
    SettingsCheck(("enable_ldap", "ldap_search_base", "ldap_app_dn", "ldap_app_password"), _directory),
    SettingsCheck(
        (*TRUSTED_HEADERS, "trusted_header_networks", "host", "custom_api_key_header"), _trusted_headers
    ),
)
"""Checks that refuse the configuration."""

WARNINGS: Final = (
    SettingsCheck(
        ("provider_rules", "providers", "openai_api_base_urls", "openai_api_keys", "ollama_base_urls"),
        _ruled_providers,
    ),
    SettingsCheck(("oauth_auto_redirect", "enable_login_form", "enable_password_auth"), _lone_redirect),
    SettingsCheck(("env", "host"), _exposed_documentation),
    SettingsCheck(("enable_initial_admin_signup", "host"), _initial_sign_up),
    SettingsCheck(("enable_ldap", "ldap_use_tls", "ldap_validate_cert"), _plain_directory),
    SettingsCheck(("scim_enabled", "scim_token"), _weak_scim_token),
    SettingsCheck(("scim_enabled", "scim_auth_provider"), _unset_scim_provider),
    SettingsCheck(
        ("enable_api_keys_endpoint_restrictions", "api_keys_allowed_endpoints"), _allowed_endpoints
    ),
)
"""Checks that only warn."""
