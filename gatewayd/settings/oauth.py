"""Settings of sign-in by identity providers, with the names of Open WebUI, and `[[oauth_providers]]`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import SIGN_IN_PROVIDERS, reload, setting
from gatewayd.urls import split_url

WELL_KNOWN: Final = "/.well-known/openid-configuration"
GOOGLE_URL: Final = f"https://accounts.google.com{WELL_KNOWN}"
RESERVED_NAMES: Final = frozenset({"google", "microsoft", "github", "oidc", "ldap", "header", "feishu"})
DEFAULT_SCOPES: Final = "openid email profile"

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("not a name")
    return text


def _address(text: str) -> str:
    """Return an address unchanged: an issuer may end with a slash."""
    parts = split_url(text)
    _ = parts.port
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme not in {"http", "https"} or not parts.hostname or not is_plain:
        raise ValueError("not an http address")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("more than an address")
    return text


def _address_or_empty(text: str) -> str:
    return text and _address(text)


def _params(value: Any) -> Any:
    if isinstance(value, str):
        value = json.loads(value or "{}")
    if value in ([], ()):
        return ()
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError("not an object of texts")
    return tuple(value.items())


def _json_list(value: Any) -> Any:
    """Return the elements of a JSON list, as Open WebUI writes it, or of a text separated by commas."""
    if isinstance(value, str):
        text = value.strip()
        return (
            json.loads(text)
            if text.startswith("[")
            else [part.strip() for part in text.split(",") if part.strip()]
        )
    return value


def _tenant(text: str) -> str:
    if text and not re.fullmatch(r"[A-Za-z0-9.-]{1,128}", text):
        raise ValueError("not a tenant")
    if text.lower() in {"common", "organizations", "consumers"}:
        raise ValueError("several tenants")
    return text


ClientSecret = Annotated[SecretStr, types.ExpectedValue("text")]
AddressOrEmpty = Annotated[
    str, AfterValidator(_address_or_empty), types.ExpectedValue('an http:// or https:// address, or ""')
]
Params = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_params),
    types.ExpectedValue("a JSON object of texts, as one text"),
]
JsonTexts = Annotated[
    tuple[types.Line, ...], BeforeValidator(_json_list), types.ExpectedValue("a list of texts, or JSON", ",")
]
Domains = Annotated[
    tuple[types.Line, ...],
    BeforeValidator(_json_list),
    types.ExpectedValue('a list of domains, or "*" for any', ","),
]


class OAuthProvider(BaseModel):
    """One `[[oauth_providers]]` table. `client_secret` is read from it, from a file, or from a credential."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str, AfterValidator(_name), types.ExpectedValue("a word of a-z, 0-9, - and _, at most 32 characters")
    ] = Field(description="Name in the addresses of the sign-in and in accounts; it must not change.")
    label: types.Line = Field("", max_length=64, description="Name on the button; the name when empty.")
    issuer: Annotated[
        str, AfterValidator(_address), types.ExpectedValue("an http:// or https:// address")
    ] = Field(description="Issuer, byte for byte as the provider writes it.")
    client_id: types.Line = Field(min_length=1, max_length=512, description="Id of the gateway there.")
    client_secret: ClientSecret = Field(SecretStr(""), description="Secret of the gateway there.")
    client_secret_file: Annotated[Path | None, types.ExpectedValue("the path of a file")] = Field(
        None, description="File that holds the secret, relative to the configuration file."
    )
    client_secret_credential: Annotated[
        types.Line | None, types.ExpectedValue("the name of a credential")
    ] = Field(None, description="Name of the file in the credentials directory that holds the secret.")
    scopes: types.Line = Field(DEFAULT_SCOPES, description="Scopes to ask for, separated by blanks.")
    redirect_uri: AddressOrEmpty = Field("", description="Replaces the address of the callback.")
    authorize_params: Params = Field((), description="Further parameters of the request, as JSON.")
    end_session_endpoint: AddressOrEmpty = Field(
        "", description="Replaces the provider's address of sign-out."
    )
    subject_claim: types.Line = Field("sub", min_length=1, description="Claim that identifies a person.")
    provisioning_claim: types.Line = Field(
        "",
        description="Claim with the id that the provider sends by SCIM as externalId; the subject if empty.",
    )
    name_claim: types.Line = Field("name", min_length=1, description="Claim of the name.")
    email_claim: types.Line = Field("email", min_length=1, description="Claim of the e-mail address.")
    roles_claim: types.Line = Field("roles", min_length=1, description="Claim of the roles.")
    groups_claim: types.Line = Field("groups", min_length=1, description="Claim of the groups.")
    sign_up: Annotated[bool | None, types.ExpectedValue("true or false")] = Field(
        None, description="Replaces enable_oauth_signup."
    )
    trust_email: Annotated[bool, types.ExpectedValue("true or false")] = Field(
        default=False,
        description="Whether a new account may have an address that the provider does not confirm.",
    )


def _flag(default: bool, sentence: str) -> Any:
    return setting(reload(SIGN_IN_PROVIDERS), default, sentence)


def _text(default: str, sentence: str, *aliases: str, **bounds: Any) -> Any:
    return setting(reload(SIGN_IN_PROVIDERS), default, sentence, *aliases, **bounds)


def _secret(sentence: str) -> Any:
    return setting(reload(SIGN_IN_PROVIDERS), SecretStr(""), sentence)


class OAuthFields(BaseSettings):
    """The settings of sign-in by providers."""

    enable_oauth: types.Switch = _flag(True, "Whether people may sign in by the configured providers.")
    enable_oauth_signup: types.Switch = _flag(False, "Whether a provider's sign-in may create an account.")
    oauth_merge_accounts_by_email: types.Switch = _flag(
        False,
        "Whether a person joins the account of their e-mail address, if the provider says that it is verified"
        " and the account is not an administrator.",
    )
    oauth_allowed_domains: Domains = setting(
        reload(SIGN_IN_PROVIDERS), ("*",), "Domains of e-mail addresses that may sign in by a provider."
    )
    oauth_trust_email: JsonTexts = setting(
        reload(SIGN_IN_PROVIDERS),
        ("microsoft",),
        "Providers whose new accounts may have an e-mail address that they do not confirm; never used to join"
        " an account.",
    )
    enable_oauth_without_email: types.Switch = _flag(
        False,
        "Whether an account may be created without an e-mail address.",
    )
    oauth_auto_redirect: types.Switch = _flag(
        False,
        "Whether the page goes to the provider at once, if there is one provider and no other way in.",
    )
    oauth_client_id: types.Line = _text("", "Client id at the provider oidc; it is off when empty.")
    oauth_client_secret: ClientSecret = _secret("Client secret at the provider oidc.")
    openid_provider_url: AddressOrEmpty = _text(
        "",
        "Address of the description of the provider oidc, which ends with /.well-known/openid-configuration.",
    )
    oauth_provider_name: types.Line = _text("SSO", "Label of the provider oidc.", min_length=1, max_length=64)
    oauth_scopes: types.Line = _text(DEFAULT_SCOPES, "Scopes for the provider oidc.")
    openid_redirect_uri: AddressOrEmpty = _text("", "Replaces the callback address of the provider oidc.")
    openid_end_session_endpoint: AddressOrEmpty = _text("", "Replaces the sign-out address of oidc.")
    oauth_authorize_params: Params = setting(
        reload(SIGN_IN_PROVIDERS), (), "Further parameters of the request to the provider oidc."
    )
    oauth_audience: types.Line = _text("", "Parameter audience of the request to the provider oidc.")
    oauth_code_challenge_method: Annotated[Literal["", "S256"], types.ExpectedValue('"S256" or ""')] = _text(
        "", "Accepted for compatibility: every request has a code challenge with S256."
    )
    oauth_sub_claim: types.Line = _text(
        "", "Claim that identifies a person; when empty sub, for github id, for feishu open_id."
    )
    oauth_provisioning_claim: types.Line = _text(
        "",
        "Claim with the id that the provider oidc sends by SCIM as externalId; the subject when empty; for"
        " microsoft it is oid.",
    )
    oauth_username_claim: types.Line = _text("name", "Claim of the name.", min_length=1)
    oauth_email_claim: types.Line = _text("email", "Claim of the e-mail address.", min_length=1)
    enable_oauth_role_management: types.Switch = _flag(
        False,
        "Whether the roles of the provider decide who may sign in, and as what.",
    )
    oauth_roles_claim: types.Line = _text("roles", "Claim of the roles; dots make a path.", min_length=1)
    oauth_roles_separator: types.Text = _text(",", "Separator of roles in a claim of one text.", min_length=1)
    oauth_allowed_roles: JsonTexts = setting(
        reload(SIGN_IN_PROVIDERS), ("user", "admin"), 'Roles that make a person a user; "*" is any.'
    )
    oauth_admin_roles: JsonTexts = setting(
        reload(SIGN_IN_PROVIDERS), ("admin",), "Roles that make a person an administrator."
    )
    oauth_lower_admins: types.Switch = _flag(
        False,
        "Whether an administrator without a role of oauth_admin_roles becomes a user; never the last one.",
    )
    enable_oauth_group_management: types.Switch = _flag(
        False,
        "Whether the groups of the provider add and remove memberships, those of the source oauth only.",
    )
    enable_oauth_group_creation: types.Switch = _flag(
        False,
        "Whether an unknown group of the provider is created.",
    )
    oauth_group_claim: types.Line = _text(
        "groups", "Claim of the groups; dots make a path.", "oauth_groups_claim", min_length=1
    )
    oauth_groups_separator: types.Text = _text(
        ";", "Separator of groups in a claim of one text.", min_length=1
    )
    oauth_group_default_share: Annotated[
        Literal["true", "members", "false"],
        BeforeValidator(lambda value: str(value).lower() if isinstance(value, bool | str) else value),
        types.ExpectedValue('"true", "members" or "false"'),
    ] = _text("true", "Who may share with a group that is created.")
    oauth_blocked_groups: JsonTexts = setting(
        reload(SIGN_IN_PROVIDERS), (), "Groups, by name or external id, that providers do not manage."
    )
    oauth_absent_groups_are_none: types.Switch = _flag(
        False,
        "Whether a missing claim of groups removes the memberships of the source oauth.",
    )
    oauth_max_sessions_per_user: types.Whole = setting(
        reload(SIGN_IN_PROVIDERS),
        10,
        "Sessions of an account at one provider; another one ends that which was not used for longest.",
        ge=1,
        le=200,
    )
    oauth_refresh_token_include_scope: types.Switch = _flag(
        False, "Whether the scopes are named when a token is refreshed, as Entra demands."
    )
    enable_oauth_backchannel_logout: types.Switch = _flag(
        True,
        "Whether a provider may end sessions by a logout token.",
    )
    webui_auth_signout_redirect_url: AddressOrEmpty = _text(
        "", "Address to go to after a sign-out; the page of the gateway when empty."
    )
    enable_oauth_token_exchange: types.Switch = _flag(
        False,
        "Whether access tokens of oauth_token_exchange_trusted_client_ids are exchanged for sessions.",
    )
    oauth_token_exchange_trusted_client_ids: JsonTexts = setting(
        reload(SIGN_IN_PROVIDERS), (), "Ids of the clients whose access tokens are accepted."
    )
    google_client_id: types.Line = _text("", "Client id at Google; the provider google is off when empty.")
    google_client_secret: ClientSecret = _secret("Client secret at Google.")
    google_oauth_scope: types.Line = _text(DEFAULT_SCOPES, "Scopes for Google.")
    google_redirect_uri: AddressOrEmpty = _text("", "Replaces the callback address of Google.")
    google_oauth_authorize_params: Params = setting(
        reload(SIGN_IN_PROVIDERS),
        (),
        "Further parameters of the request to Google; the domain of hd must also be in the answer.",
    )
    microsoft_client_id: types.Line = _text(
        "", "Client id at Entra; the provider microsoft is off when empty."
    )
    microsoft_client_secret: ClientSecret = _secret("Client secret at Entra.")
    microsoft_client_tenant_id: Annotated[
        str, AfterValidator(_tenant), types.ExpectedValue("the id of one tenant")
    ] = _text("", "Id of the Entra tenant.")
    microsoft_oauth_scope: types.Line = _text(DEFAULT_SCOPES, "Scopes for Entra.")
    microsoft_redirect_uri: AddressOrEmpty = _text("", "Replaces the callback address of Entra.")
    microsoft_client_login_base_url: types.Url = _text(
        "https://login.microsoftonline.com", "Address of Entra, for national clouds."
    )
    github_client_id: types.Line = _text("", "Client id at GitHub; the provider github is off when empty.")
    github_client_secret: ClientSecret = _secret("Client secret at GitHub.")
    github_client_scope: types.Line = _text("user:email", "Scopes for GitHub.")
    github_client_redirect_uri: AddressOrEmpty = _text("", "Replaces the callback address of GitHub.")
    feishu_client_id: types.Line = _text("", "App id at Feishu; the provider feishu is off when empty.")
    feishu_client_secret: ClientSecret = _secret("App secret at Feishu.")
    feishu_oauth_scope: types.Line = _text("contact:user.base:readonly", "Scopes for Feishu.")
    feishu_redirect_uri: AddressOrEmpty = _text("", "Replaces the callback address of Feishu.")
    oauth_providers: Annotated[
        tuple[OAuthProvider, ...], types.ExpectedValue("[[oauth_providers]] tables")
    ] = setting(reload(SIGN_IN_PROVIDERS), (), "Further providers, one table each; only files can set them.")


def problems_of(settings: OAuthFields) -> Iterator[tuple[str, str]]:
    """Yield the setting and the sentence of each contradiction."""
    if settings.oauth_client_id and not settings.openid_provider_url:
        yield "oauth_client_id", "cannot use oauth_client_id: openid_provider_url is not set"
    if settings.openid_provider_url and not settings.openid_provider_url.endswith(WELL_KNOWN):
        yield (
            "openid_provider_url",
            f"cannot use openid_provider_url: expected an address with {WELL_KNOWN} at its end",
        )
    if settings.microsoft_client_id and not settings.microsoft_client_tenant_id:
        yield "microsoft_client_id", "cannot use microsoft_client_id: microsoft_client_tenant_id is not set"
    if settings.enable_oauth_token_exchange and not settings.oauth_token_exchange_trusted_client_ids:
        yield (
            "enable_oauth_token_exchange",
            "cannot use enable_oauth_token_exchange: oauth_token_exchange_trusted_client_ids is empty",
        )
    seen: set[str] = set()
    for table in settings.oauth_providers:
        if table.name in RESERVED_NAMES or table.name in seen:
            yield "oauth_providers", f"cannot use the provider name {table.name!r}: it is taken"
        seen.add(table.name)
