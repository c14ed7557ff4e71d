"""Identity providers as they are configured, and as they describe themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.accounts.identity.records import IdentityRules

WELL_KNOWN: Final = "/.well-known/openid-configuration"
"""Path of the description of a provider (OpenID Connect Discovery 1.0, 4)."""

SIGNATURE_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Signatures with a public key; no token is accepted with another one."""


class ProviderKind(StrEnum):
    """The protocol of a provider: OpenID Connect, or the OAuth 2.0 of GitHub, which has no id tokens."""

    OIDC = "oidc"
    GITHUB = "github"
    FEISHU = "feishu"


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The claims to read; a name with dots may be a path. An empty `provisioning` means the subject.

    `role_separator` and `group_separator` split a claim that is one text. `absent_groups_are_none` takes a
    missing claim of groups as an empty one.
    """

    subject: str = "sub"
    name: str = "name"
    email: str = "email"
    roles: str = "roles"
    groups: str = "groups"
    provisioning: str = ""
    role_separator: str = ","
    group_separator: str = ";"
    absent_groups_are_none: bool = False


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """One configured provider.

    `discovery_url` is the address of its description. An empty `issuer` is the one that belongs to that
    address. `redirect_uri` replaces the address of the callback. `required_claims` must have these values in
    the id token. `trusted_clients` are the clients whose access tokens are exchanged for a session.
    `refreshes_scopes` names the scopes when a token is refreshed.
    """

    name: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    kind: ProviderKind = ProviderKind.OIDC
    label: str = ""
    discovery_url: str = ""
    issuer: str = ""
    scopes: str = "openid email profile"
    redirect_uri: str = ""
    authorize_params: tuple[tuple[str, str], ...] = ()
    required_claims: tuple[tuple[str, str], ...] = ()
    end_session_endpoint: str = ""
    claims: ClaimNames = field(default_factory=ClaimNames)
    rules: IdentityRules = field(default_factory=IdentityRules)
    trusted_clients: tuple[str, ...] = ()
    refreshes_scopes: bool = False

    @property
    def shown_label(self) -> str:
        """The name for people."""
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """What the description of a provider says, checked; an empty text for what it lacks.

    With `takes_json`, the token endpoint wants JSON in place of a form.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str = ""
    userinfo_endpoint: str = ""
    introspection_endpoint: str = ""
    revocation_endpoint: str = ""
    end_session_endpoint: str = ""
    algorithms: tuple[str, ...] = ("RS256",)
    sends_issuer: bool = False
    secret_in_body: bool = False
    takes_json: bool = False


JsonObject = Mapping[str, Any]
"""A JSON object of a provider."""
