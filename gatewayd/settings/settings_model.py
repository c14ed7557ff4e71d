"""The settings themselves: names, types, defaults and one sentence each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from pydantic import ByteSize, PrivateAttr, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gatewayd.settings import types
from gatewayd.settings.connections import ConnectionFields
from gatewayd.settings.directory import DirectoryFields
from gatewayd.settings.fields import (
    ACCESS,
    ACCOUNTS,
    BUILT_IN_MODEL,
    KEYS,
    LIMITS,
    LOGGING,
    PROVIDERS,
    PROVISIONING,
    SERVER,
    STORAGE,
    reload,
    restart,
    setting,
)
from gatewayd.settings.layers import BUILT_IN, LayerSource, SettingLayer, SettingOrigin
from gatewayd.settings.listeners import ListenerFields
from gatewayd.settings.model_prices import ModelPriceTable
from gatewayd.settings.oauth import OAuthFields
from gatewayd.settings.operations.cluster import ClusterFields
from gatewayd.settings.operations.file_store import FileStoreFields
from gatewayd.settings.operations.metrics import MetricsFields
from gatewayd.settings.operations.retention import RetentionFields
from gatewayd.settings.page import PageFields
from gatewayd.settings.permissions import PermissionFields
from gatewayd.settings.plugins import PluginFields
from gatewayd.settings.provider_rules import ProviderRule
from gatewayd.settings.providers import Provider, from_ollama_list, from_openai_lists
from gatewayd.settings.retrieval import RetrievalFields
from gatewayd.settings.signin import SignInFields

RUNTIME_NAMES: Final = (
    "ENABLE_SIGNUP",
    "ENABLE_API_KEYS",
    "ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS",
    "API_KEYS_ALLOWED_ENDPOINTS",
    "DEFAULT_USER_ROLE",
    "DEFAULT_GROUP_ID",
    "JWT_EXPIRES_IN",
    "SHOW_ADMIN_DETAILS",
    "ADMIN_EMAIL",
    "WEBUI_URL",
)
"""Settings that administrators may change while the daemon runs."""


@dataclass(frozen=True, slots=True)
class ConfiguredRuntime:
    """The configured value of a setting that may change at run time, and where it comes from."""

    value: bool | str
    origin: str
    explicit: bool


class Settings(
    ListenerFields,
    ClusterFields,
    ConnectionFields,
    DirectoryFields,
    FileStoreFields,
    MetricsFields,
    RetentionFields,
    PageFields,
    PluginFields,
    RetrievalFields,
    SignInFields,
    OAuthFields,
    PermissionFields,
):
    """Every setting. `Settings()` is the built-in defaults; `gatewayd.settings.load` reads the real ones."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    env: Annotated[Literal["dev", "prod"], types.ExpectedValue('"dev" or "prod"')] = setting(
        restart(SERVER),
        "prod",
        "Kind of installation; with dev, /docs and /openapi.json describe the API to everybody.",
    )
    webui_name: types.Line = setting(
        restart(SERVER), "gatewayd", "Name of this gateway, shown to users.", min_length=1, max_length=128
    )
    webui_url: types.UrlOrEmpty = setting(
        reload(SERVER),
        "",
        "Public address of this gateway, for links and the addresses of SCIM resources.",
    )
    cors_allow_origin: types.WebOrigins = setting(
        restart(SERVER), (), "Web origins whose pages may call the API; none when empty."
    )
    trusted_proxies: types.Networks = setting(
        restart(SERVER),
        (),
        "Networks of proxies; X-Forwarded-For, -Proto and -Host are accepted from these only.",
    )

    data_dir: types.Directory = setting(
        restart(STORAGE),
        Path("/var/lib/gatewayd"),
        "Directory of all state; the state directory of the service manager by default.",
    )
    database_url: types.DatabaseUrl = setting(
        restart(STORAGE),
        SecretStr(""),
        "Database of the gateway; the SQLite file gatewayd.db in data_dir when empty.",
    )
    database_pool_size: types.Whole = setting(
        restart(STORAGE), 10, "Maximum number of connections to a PostgreSQL database.", ge=1, le=1000
    )

    backup_dir: types.OptionalFile = setting(
        restart(STORAGE),
        None,
        "Directory of the backups that gatewayctl backup makes; backups in data_dir when empty.",
    )
    backup_passphrase: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(STORAGE),
        SecretStr(""),
        "Passphrase with which backups seal the secrets; when empty, backups have no secrets.",
    )

    webui_secret_key: types.SigningSecret = setting(
        restart(ACCOUNTS),
        SecretStr(""),
        "Secret that signs session tokens; when empty, the first start generates one and stores it in"
        " data_dir.",
        "webui_jwt_secret_key",
    )
    webui_secret_key_previous: types.SigningSecret = setting(
        restart(ACCOUNTS),
        SecretStr(""),
        "The former webui_secret_key while sessions that it signed are to stay valid; it signs nothing.",
    )
    webui_auth_cookie_same_site: Annotated[
        Literal["lax", "strict", "none"], types.ExpectedValue('"lax", "strict" or "none"')
    ] = setting(
        restart(ACCOUNTS),
        "lax",
        "SameSite attribute of the session cookie.",
        "webui_session_cookie_same_site",
    )
    webui_auth_cookie_secure: types.Switch = setting(
        restart(ACCOUNTS),
        False,
        "Whether browsers send the session cookie over HTTPS only.",
        "webui_session_cookie_secure",
    )
    jwt_expires_in: types.Lifetime = setting(
        reload(ACCOUNTS), "4w", "Lifetime of a session; every session has an end."
    )
    enable_signup: types.Switch = setting(
        reload(ACCOUNTS), True, "Whether people may create accounts themselves."
    )
    enable_login_form: types.Switch = setting(
        restart(ACCOUNTS),
        True,
        "Whether /api/config tells clients to show a sign-in form; never if enable_password_auth is false.",
    )
    enable_password_auth: types.Switch = setting(
        restart(ACCOUNTS), True, "Whether sign-in accepts a password."
    )
    default_user_role: Annotated[
        Literal["pending", "user", "admin"], types.ExpectedValue('"pending", "user" or "admin"')
    ] = setting(reload(ACCOUNTS), "pending", "Role of a new account.")
    default_group_id: types.Line = setting(
        reload(ACCOUNTS), "", "Id of the group that a new account joins; none when empty."
    )
    show_admin_details: types.Switch = setting(
        reload(ACCOUNTS), True, "Whether a pending account sees the address of an administrator."
    )
    admin_email: types.MailOrEmpty = setting(
        reload(ACCOUNTS),
        "",
        "E-mail address that a pending account sees; that of the first administrator when empty.",
    )
    enable_persistent_config: types.Switch = setting(
        restart(ACCOUNTS),
        True,
        "Whether values that administrators change at run time are stored and take precedence over this"
        " configuration.",
    )

    enable_api_keys: types.Switch = setting(
        reload(KEYS),
        False,
        "Whether API keys can be used; accounts need the permission features.api_keys as well.",
        "enable_api_key",
    )
    enable_api_keys_endpoint_restrictions: types.Switch = setting(
        reload(KEYS),
        False,
        "Whether API keys may use only the paths of api_keys_allowed_endpoints.",
        "enable_api_key_endpoint_restrictions",
    )
    api_keys_allowed_endpoints: types.Paths = setting(
        reload(KEYS),
        (),
        "Paths that restricted API keys may use, each with everything below it; one that ends with a slash"
        " means that path alone, with and without the slash.",
        "api_key_allowed_endpoints",
    )
    custom_api_key_header: types.HeaderName = setting(
        restart(KEYS), "x-api-key", "Header that carries an API key if Authorization does not."
    )

    scim_enabled: types.Switch = setting(
        reload(PROVISIONING), False, "Whether identity providers may manage accounts by SCIM.", "enable_scim"
    )
    scim_token: types.ScimTokens = setting(
        reload(PROVISIONING),
        (),
        "Tokens of SCIM clients: one, or two while one replaces the other; when empty those of the database,"
        " which gatewayctl scim-token makes.",
    )
    scim_token_file: types.OptionalFile = setting(
        reload(PROVISIONING),
        None,
        "File with one or two SCIM tokens, a line each, which the database takes over at a start and a"
        " reload; scim-token in data_dir when empty.",
    )
    scim_auth_provider: types.ProviderName = setting(
        restart(PROVISIONING),
        "",
        "Name of the identity provider that issues the external ids and OAuth subjects.",
    )

    bypass_model_access_control: types.Switch = setting(
        restart(ACCESS), False, "Whether every account may use every model."
    )
    bypass_admin_access_control: types.Switch = setting(
        restart(ACCESS),
        True,
        "Whether administrators bypass the access lists of models, collections, tools and tool servers.",
    )

    enable_openai_api: types.Switch = setting(
        reload(PROVIDERS), True, "Whether to use the providers of openai_api_base_urls and openai_api_keys."
    )
    openai_api_base_urls: types.SparseUrls = setting(
        reload(PROVIDERS),
        (),
        "Addresses of OpenAI-compatible providers; an empty element means https://api.openai.com/v1.",
        "openai_api_base_url",
    )
    openai_api_keys: types.SparseKeys = setting(
        reload(PROVIDERS),
        (),
        "Keys for openai_api_base_urls, matched by position; without addresses, for https://api.openai.com/v1.",
        "openai_api_key",
    )
    enable_ollama_api: types.Switch = setting(
        reload(PROVIDERS), True, "Whether to use the runtimes of ollama_base_urls."
    )
    ollama_base_urls: types.Urls = setting(
        reload(PROVIDERS), (), "Addresses of Ollama runtimes.", "ollama_base_url"
    )
    providers: Annotated[tuple[Provider, ...], types.ExpectedValue("[[providers]] tables")] = setting(
        reload(PROVIDERS), (), "Further providers, one table each; only files can set them."
    )
    provider_rules: Annotated[tuple[ProviderRule, ...], types.ExpectedValue("[[provider_rules]] tables")] = (
        setting(
            reload(PROVIDERS),
            (),
            "Changes of what requests to providers may contain, one table each; only files can set them.",
        )
    )
    model_prices: Annotated[tuple[ModelPriceTable, ...], types.ExpectedValue("[[model_prices]] tables")] = (
        setting(
            reload(PROVIDERS),
            (),
            "Prices of models, one table each, the first that fits first; only files can set them.",
        )
    )
    models_cache_ttl: types.Seconds = setting(
        restart(PROVIDERS), 30.0, "Time for which the model list of a provider is cached.", ge=0
    )
    anthropic_model_alias_prefix: types.Line = setting(
        restart(PROVIDERS),
        "",
        "Text put before the ids of models in lists for Anthropic clients, unless they begin with claude or"
        " anthropic, such as claude-; requests may use these names too; empty for none.",
    )

    enable_builtin_model: types.AutoSwitch = setting(
        restart(BUILT_IN_MODEL),
        "auto",
        "Whether to run the built-in model; auto runs it if it is installed.",
    )
    builtin_model_path: types.OptionalFile = setting(
        restart(BUILT_IN_MODEL), None, "GGUF file of another model to run as the built-in one."
    )
    builtin_model_threads: types.Whole = setting(
        restart(BUILT_IN_MODEL),
        0,
        "Number of threads of the built-in model; 0 derives it from the processors.",
        ge=0,
        le=1024,
    )

    batch_parallel_requests: types.Whole = setting(
        restart(LIMITS),
        4,
        "Maximum number of requests of batches that run at once.",
        ge=1,
        le=1000,
    )
    request_body_limit: types.Size = setting(
        restart(LIMITS),
        ByteSize(32 * 2**20),
        "Maximum size of the body of a chat request.",
        ge=1024,
        le=2**30,
    )
    stored_response_lifetime: types.Seconds = setting(
        restart(LIMITS),
        604_800.0,
        "Time that a response of the Responses protocol is kept after its last use; with 0 none is kept.",
        ge=0,
        le=10 * 366 * 86_400,
    )
    stored_response_limit: types.Size = setting(
        restart(LIMITS),
        ByteSize(32 * 2**20),
        "Maximum size of the stored responses of one user, with their input; the oldest ones give way.",
        ge=1024,
        le=2**40,
    )
    drain_timeout: types.Seconds = setting(
        reload(LIMITS),
        30.0,
        "Time that requests and running answers have to finish after the daemon receives SIGTERM.",
        ge=0,
    )
    stream_head_timeout: types.OptionalSeconds = setting(
        restart(LIMITS),
        15.0,
        "Time without a first event after which a streamed answer starts with its head and keep-alives.",
        gt=0,
    )
    upstream_connect_timeout: types.Seconds = setting(
        reload(LIMITS), 5.0, "Maximum time to connect to a provider.", gt=0
    )
    upstream_first_byte_timeout: types.Seconds = setting(
        reload(LIMITS),
        300.0,
        "Maximum wait for the head of a provider's answer after the request is sent, and again for the first"
        " byte of its body.",
        gt=0,
    )
    aiohttp_client_stream_idle_timeout: types.OptionalSeconds = setting(
        reload(LIMITS), 120.0, "Maximum pause between two parts of a provider's answer.", gt=0
    )
    aiohttp_client_timeout: types.OptionalSeconds = setting(
        reload(LIMITS), None, "Maximum time for the whole answer of a provider.", gt=0
    )
    aiohttp_client_timeout_model_list: types.Seconds = setting(
        restart(LIMITS),
        10.0,
        "Maximum wait for the model list of a provider.",
        "aiohttp_client_timeout_openai_model_list",
        gt=0,
    )

    global_log_level: types.LogLevel = setting(
        reload(LOGGING), "INFO", "Minimum level of the messages to log."
    )
    debug_loggers: types.Texts = setting(
        reload(LOGGING),
        (),
        "Names of loggers of libraries and plugins that log from DEBUG on, which may show chat messages and"
        " password hashes; all others start at INFO.",
        max_length=100,
    )
    log_format: Annotated[
        Literal["", "json", "text"],
        types.ExpectedValue('"json", "text", or "" for text'),
    ] = setting(reload(LOGGING), "", "Format of log lines.")

    _origins: Mapping[str, SettingOrigin] = PrivateAttr(default_factory=dict)
    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: Any,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the given layers as the only sources, highest first; they know lines and credentials."""
        layers: Iterable[SettingLayer] = init_settings.init_kwargs.pop("layers", ())
        return tuple(LayerSource(settings_cls, layer) for layer in reversed(tuple(layers)))

    @classmethod
    def from_layers(cls, layers: Iterable[SettingLayer]) -> "Settings":
        """Merge the layers, lowest first, over the defaults; raises pydantic's ValidationError."""
        arguments: dict[str, Any] = {"layers": tuple(layers)}
        return cls(**arguments)

    @property
    def origins(self) -> Mapping[str, SettingOrigin]:
        """Where each setting's value comes from, for every setting."""
        return MappingProxyType({name: self._origins.get(name, BUILT_IN) for name in type(self).model_fields})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to log: the configuration works, but an administrator should check it."""
        return self._warnings

    def with_notes(self, origins: Mapping[str, SettingOrigin], warnings: Iterable[str]) -> "Settings":
        """Return these settings with the origins and warnings of their loading."""
        noted = self.model_copy()
        noted._origins = dict(origins)
        noted._warnings = tuple(warnings)
        return noted

    def database_location(self) -> str:
        """Return the database address, secrets included: `database_url`, or the SQLite file in data_dir."""
        return self.database_url.get_secret_value() or f"sqlite:///{quote(str(self.data_dir))}/gatewayd.db"

    def backup_path(self) -> Path:
        """Return the directory of backups."""
        return self.backup_dir or self.data_dir / "backups"

    def scim_token_path(self) -> Path:
        """Return the file of SCIM tokens, which the database takes over if `scim_token` is not set."""
        return self.scim_token_file or self.data_dir / "scim-token"

    @property
    def is_scim_token_external(self) -> bool:
        """Whether a setting gives the SCIM token, instead of the database and the file that it takes over."""
        return bool(self.scim_token) and self.origins["scim_token"].file != self.scim_token_path()

    def all_providers(self) -> tuple[Provider, ...]:
        """Return the providers to use: the OpenAI lists, the tables, the Ollama list, in this order."""
        switches = {
            "openai_api_base_urls": self.enable_openai_api,
            "ollama_base_urls": self.enable_ollama_api,
        }
        return tuple(provider for name, provider in self.listed_providers() if switches.get(name, True))

    def listed_providers(self) -> Sequence[tuple[str, Provider]]:
        """Return the providers of `all_providers` and those that are switched off, each with its setting."""
        hosted = from_openai_lists(self.openai_api_base_urls, self.openai_api_keys)
        return [
            *(("openai_api_base_urls", each) for each in hosted),
            *(("providers", each) for each in self.providers),
            *(("ollama_base_urls", each) for each in from_ollama_list(self.ollama_base_urls)),
        ]

    def runtime_values(self) -> Mapping[str, ConfiguredRuntime]:
        """Return the settings that administrators may change at run time; lists are joined by commas."""
        origins = self.origins
        found = {}
        for name in RUNTIME_NAMES:
            value = getattr(self, name.lower())
            origin = origins[name.lower()]
            shown = ",".join(value) if isinstance(value, tuple) else value
            found[name] = ConfiguredRuntime(shown, origin.text, origin.explicit)
        return found
