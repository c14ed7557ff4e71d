"""Sign-in by identity providers: the configured providers, and the services over them."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.accounts.identity.attempts import SignInAttempts
from gatewayd.accounts.identity.discovery import ProviderDirectory
from gatewayd.accounts.identity.identity_links import IdentityLinks
from gatewayd.accounts.identity.person_tokens import PersonTokens
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.provider_logout import ProviderLogout
from gatewayd.accounts.identity.providers import WELL_KNOWN, ClaimNames, ProviderKind, ProviderOptions
from gatewayd.accounts.identity.records import GroupRules, IdentityRules, RoleRules
from gatewayd.accounts.identity.token_exchange import TokenExchange
from gatewayd.accounts.sessions import Sessions
from gatewayd.assembly.accounts import AccountServices, AccountStores, signing_keys
from gatewayd.settings import Settings
from gatewayd.settings.oauth import GOOGLE_URL, OAuthProvider
from gatewayd.upstream.identity.client import IdentityProviderClient

log = logging.getLogger(__name__)

SHARES: Final[dict[str, str | bool]] = {"true": True, "false": False, "members": "members"}


@dataclass(slots=True)
class IdentitySwitches:
    """Settings of sign-in by providers that a reload changes, beside the providers."""

    accepts_logout: bool = True
    redirects: bool = False
    signout_url: str = ""

    def configure(self, settings: Settings) -> None:
        """Apply the settings."""
        has_form = settings.enable_login_form and settings.enable_password_auth
        has_other = settings.enable_ldap or bool(settings.webui_auth_trusted_email_header)
        self.accepts_logout = settings.enable_oauth_backchannel_logout
        self.redirects = settings.oauth_auto_redirect and not (has_form or has_other)
        self.signout_url = settings.webui_auth_signout_redirect_url


@dataclass(frozen=True, slots=True)
class IdentityServices:
    """The services of sign-in by providers; they also are the `SignInProviders` of the configuration."""

    login: ProviderLogin
    logout: ProviderLogout
    links: IdentityLinks
    exchange: TokenExchange
    tokens: PersonTokens
    switches: IdentitySwitches
    sessions: Sessions

    def configure(self, settings: Settings) -> None:
        """Apply the providers of a reload."""
        chosen = configured_identity_providers(settings)
        log_callbacks(settings, chosen)
        self.login.configure(chosen)
        self.switches.configure(settings)
        self.sessions.max_per_provider = settings.oauth_max_sessions_per_user

    async def sign_out_address(self, session_id: str, site: str) -> str:
        """Return where the browser goes after a sign-out, "" for the page; `site` is the public address."""
        elsewhere = self.switches.signout_url
        return await self.logout.address(session_id, elsewhere or f"{site}/auth") or elsewhere

    def labels(self) -> dict[str, str]:
        """Return the label of each provider, by its name."""
        return {options.name: options.shown_label for options in self.login.providers}

    def redirects(self) -> bool:
        """Return whether clients go to the provider at once: it is the only way in."""
        return self.switches.redirects and len(self.login.providers) == 1


def make_identity(settings: Settings, accounts: AccountServices, stores: AccountStores) -> IdentityServices:
    """Return the services; without a provider, no one can sign in by one."""
    transport = IdentityProviderClient()
    directory = ProviderDirectory(transport)
    attempts = SignInAttempts(signing_keys(settings), stores.identities)
    chosen = configured_identity_providers(settings)
    log_callbacks(settings, chosen)
    login = ProviderLogin(transport, directory, attempts, chosen)
    switches = IdentitySwitches()
    switches.configure(settings)
    accounts.sessions.max_per_provider = settings.oauth_max_sessions_per_user
    return IdentityServices(
        sessions=accounts.sessions,
        switches=switches,
        login=login,
        logout=ProviderLogout(login, directory, stores.identities, accounts.sessions),
        links=IdentityLinks(
            accounts.users,
            stores.users,
            stores.identities,
            accounts.commits,
            login,
            has_passwords=settings.enable_password_auth,
            other_ways=_other_ways(settings),
        ),
        exchange=TokenExchange(login, directory, transport),
        tokens=PersonTokens(login, stores.identities, accounts.sessions),
    )


def log_callbacks(settings: Settings, providers: Sequence[ProviderOptions]) -> None:
    """Log the redirect address of each provider, which must be registered there exactly so."""
    site = settings.webui_url.rstrip("/") or "the address of the request"
    for options in providers:
        address = options.redirect_uri or f"{site}/oauth/{options.name}/callback"
        log.info("identity provider", extra={"provider": options.name, "redirect_address": address})


def _other_ways(settings: Settings) -> Sequence[str]:
    has_header = bool(settings.webui_auth_trusted_email_header)
    return ("ldap",) * settings.enable_ldap + ("header",) * has_header


def configured_identity_providers(settings: Settings) -> Sequence[ProviderOptions]:
    """Return the options of each configured provider, none if sign-in by providers is off."""
    if not settings.enable_oauth:
        return ()
    return tuple(_providers(settings))


def _providers(settings: Settings) -> Iterator[ProviderOptions]:
    if settings.google_client_id:
        yield _google(settings)
    if settings.microsoft_client_id:
        yield _microsoft(settings)
    if settings.github_client_id:
        yield _github(settings)
    if settings.feishu_client_id:
        yield _feishu(settings)
    if settings.oauth_client_id:
        yield _generic(settings)
    for table in settings.oauth_providers:
        yield _table(settings, table)


def _google(settings: Settings) -> ProviderOptions:
    params = settings.google_oauth_authorize_params
    domains = tuple((name, value) for name, value in params if name == "hd" and value != "*")
    return ProviderOptions(
        name="google",
        label="Google",
        client_id=settings.google_client_id,
        client_secret=settings.google_client_secret.get_secret_value(),
        discovery_url=GOOGLE_URL,
        scopes=settings.google_oauth_scope,
        redirect_uri=settings.google_redirect_uri,
        authorize_params=params,
        required_claims=domains,
        **_common(settings, "google"),
    )


def _microsoft(settings: Settings) -> ProviderOptions:
    tenant = f"{settings.microsoft_client_login_base_url}/{settings.microsoft_client_tenant_id}/v2.0"
    return ProviderOptions(
        name="microsoft",
        label="Microsoft",
        client_id=settings.microsoft_client_id,
        client_secret=settings.microsoft_client_secret.get_secret_value(),
        discovery_url=tenant + WELL_KNOWN,
        scopes=settings.microsoft_oauth_scope,
        redirect_uri=settings.microsoft_redirect_uri,
        **_common(settings, "microsoft", provisioning="oid"),
    )


def _github(settings: Settings) -> ProviderOptions:
    return ProviderOptions(
        name="github",
        kind=ProviderKind.GITHUB,
        label="GitHub",
        client_id=settings.github_client_id,
        client_secret=settings.github_client_secret.get_secret_value(),
        scopes=settings.github_client_scope,
        redirect_uri=settings.github_client_redirect_uri,
        **_common(settings, "github", subject="id"),
    )


def _feishu(settings: Settings) -> ProviderOptions:
    return ProviderOptions(
        name="feishu",
        kind=ProviderKind.FEISHU,
        label="Feishu",
        client_id=settings.feishu_client_id,
        client_secret=settings.feishu_client_secret.get_secret_value(),
        scopes=settings.feishu_oauth_scope,
        redirect_uri=settings.feishu_redirect_uri,
        **_common(settings, "feishu", subject="open_id"),
    )


def _generic(settings: Settings) -> ProviderOptions:
    params = dict(settings.oauth_authorize_params)
    if settings.oauth_audience:
        params.setdefault("audience", settings.oauth_audience)
    return ProviderOptions(
        name="oidc",
        label=settings.oauth_provider_name,
        client_id=settings.oauth_client_id,
        client_secret=settings.oauth_client_secret.get_secret_value(),
        discovery_url=settings.openid_provider_url,
        scopes=settings.oauth_scopes,
        redirect_uri=settings.openid_redirect_uri,
        authorize_params=tuple(params.items()),
        end_session_endpoint=settings.openid_end_session_endpoint,
        **_common(settings, "oidc", provisioning=settings.oauth_provisioning_claim),
    )


def _table(settings: Settings, table: OAuthProvider) -> ProviderOptions:
    claims = ClaimNames(
        subject=table.subject_claim,
        name=table.name_claim,
        email=table.email_claim,
        roles=table.roles_claim,
        groups=table.groups_claim,
        provisioning=table.provisioning_claim,
        role_separator=settings.oauth_roles_separator,
        group_separator=settings.oauth_groups_separator,
        absent_groups_are_none=settings.oauth_absent_groups_are_none,
    )
    return ProviderOptions(
        name=table.name,
        label=table.label,
        client_id=table.client_id,
        client_secret=table.client_secret.get_secret_value(),
        discovery_url=table.issuer.removesuffix("/") + WELL_KNOWN,
        issuer=table.issuer,
        scopes=table.scopes,
        redirect_uri=table.redirect_uri,
        authorize_params=table.authorize_params,
        end_session_endpoint=table.end_session_endpoint,
        claims=claims,
        rules=_rules(settings, table.name, sign_up=table.sign_up, trusts_email=table.trust_email),
        trusted_clients=_trusted_clients(settings),
        refreshes_scopes=settings.oauth_refresh_token_include_scope,
    )


def _common(settings: Settings, name: str, *, subject: str = "sub", provisioning: str = "") -> dict[str, Any]:
    claims = ClaimNames(
        subject=settings.oauth_sub_claim or subject,
        name=settings.oauth_username_claim,
        email=settings.oauth_email_claim,
        roles=settings.oauth_roles_claim,
        groups=settings.oauth_group_claim,
        provisioning=provisioning,
        role_separator=settings.oauth_roles_separator,
        group_separator=settings.oauth_groups_separator,
        absent_groups_are_none=settings.oauth_absent_groups_are_none,
    )
    return {
        "claims": claims,
        "rules": _rules(settings, name),
        "trusted_clients": _trusted_clients(settings),
        "refreshes_scopes": settings.oauth_refresh_token_include_scope,
    }


def _trusted_clients(settings: Settings) -> tuple[str, ...]:
    return settings.oauth_token_exchange_trusted_client_ids if settings.enable_oauth_token_exchange else ()


def _rules(
    settings: Settings, name: str, *, sign_up: bool | None = None, trusts_email: bool = False
) -> IdentityRules:
    return IdentityRules(
        sign_up=settings.enable_oauth_signup if sign_up is None else sign_up,
        merge_by_email=settings.oauth_merge_accounts_by_email,
        allowed_domains=settings.oauth_allowed_domains,
        trust_email=trusts_email or name in settings.oauth_trust_email,
        without_email=settings.enable_oauth_without_email,
        roles=RoleRules(
            is_managed=settings.enable_oauth_role_management,
            allowed=settings.oauth_allowed_roles,
            admins=settings.oauth_admin_roles,
            may_lower_admins=settings.oauth_lower_admins,
        ),
        groups=GroupRules(
            is_managed=settings.enable_oauth_group_management,
            may_create=settings.enable_oauth_group_creation,
            unmanaged=settings.oauth_blocked_groups,
            share=SHARES[settings.oauth_group_default_share],
        ),
    )
