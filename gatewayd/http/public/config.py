"""Body of `/api/config`, the configuration that clients read before and after sign-in."""

from dataclasses import dataclass
from typing import Any, Protocol

from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Actor
from gatewayd.accounts.runtime_settings import RuntimeSettings


class UserCount(Protocol):
    """Counts the accounts."""

    async def count(self) -> int:
        """Return how many users exist."""
        ...


class SignUpPolicy(Protocol):
    """Policy of sign-ups."""

    async def is_open(self) -> bool:
        """Return whether a sign-up would be accepted now."""
        ...


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """Values of the configuration file for clients.

    `enable_login_form` is whether clients should offer a password form, as passwords are accepted.
    `ldap_label` is the name of the directory, "" without one. `auth_trusted_header` is whether a proxy may
    name the person, so that clients sign in without a form.
    """

    name: str
    version: str
    enable_login_form: bool = True
    ldap_label: str = ""
    auth_trusted_header: bool = False


class SignInProviders(Protocol):
    """The identity providers that people may sign in by."""

    def labels(self) -> dict[str, str]:
        """Return the label of each provider, by its name."""
        ...

    def redirects(self) -> bool:
        """Return whether clients go to the provider at once."""
        ...


class ClientConfig:
    """The configuration for clients, with the keys of Open WebUI; accounts get more of it."""

    def __init__(
        self,
        facts: SiteFacts,
        runtime: RuntimeSettings,
        permissions: Permissions,
        users: UserCount,
        sign_up: SignUpPolicy,
        providers: SignInProviders,
    ) -> None:
        self._facts = facts
        self._runtime = runtime
        self._permissions = permissions
        self._users = users
        self._sign_up = sign_up
        self._providers = providers

    async def describe(self, actor: Actor | None) -> dict[str, Any]:
        """Return the body for a caller; `onboarding` is true while no user exists."""
        body: dict[str, Any] = {
            "status": True,
            "name": self._facts.name,
            "version": self._facts.version,
            "default_locale": "",
            "oauth": {"providers": self._providers.labels(), "auto_redirect": self._providers.redirects()},
            "features": await self._features(),
        }
        if self._facts.ldap_label:
            body["ldap"] = {"label": self._facts.ldap_label}
        if actor is None:
            if await self._users.count() == 0:
                body["onboarding"] = True
            return body
        body["ui"] = {
            "pending_user_overlay_title": self._runtime.text("PENDING_USER_OVERLAY_TITLE"),
            "pending_user_overlay_content": self._runtime.text("PENDING_USER_OVERLAY_CONTENT"),
            "response_watermark": self._runtime.text("RESPONSE_WATERMARK"),
        }
        if actor.is_verified:
            body["features"]["enable_api_keys"] = self._runtime.flag("ENABLE_API_KEYS")
            # No model is preselected; clients of Open WebUI expect the key.
            body["default_models"] = None
            body["permissions"] = self._permissions.defaults()
        return body

    async def _features(self) -> dict[str, bool]:
        """Return the features: accounts, the ways to sign in, and events by websocket."""
        return {
            "auth": True,
            "auth_trusted_header": self._facts.auth_trusted_header,
            "enable_signup_password_confirmation": False,
            "enable_ldap": bool(self._facts.ldap_label),
            "enable_signup": await self._sign_up.is_open(),
            "enable_login_form": self._facts.enable_login_form,
            "enable_websocket": True,
        }
