"""What clients must know about this gateway before and after sign-in: the body of `/api/config`."""

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
    """Knows whether people may make accounts themselves."""

    async def is_open(self) -> bool:
        """Tell whether a sign-up would be accepted now."""
        ...


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the configuration file says about the site.

    `enable_login_form` is whether a form for a password is worth offering: where passwords are not accepted,
    it is not.
    """

    name: str
    version: str
    enable_login_form: bool = True


class ClientConfig:
    """Describes the gateway to clients; little to strangers, more to accounts (peer-compatible keys)."""

    def __init__(
        self,
        facts: SiteFacts,
        runtime: RuntimeSettings,
        permissions: Permissions,
        users: UserCount,
        sign_up: SignUpPolicy,
    ) -> None:
        self._facts = facts
        self._runtime = runtime
        self._permissions = permissions
        self._users = users
        self._sign_up = sign_up

    async def describe(self, actor: Actor | None) -> dict[str, Any]:
        """Return the body for a caller; `onboarding` is true while no user exists."""
        body: dict[str, Any] = {
            "status": True,
            "name": self._facts.name,
            "version": self._facts.version,
            "default_locale": "",
            "oauth": {"providers": {}, "auto_redirect": False},
            "features": await self._features(),
        }
        if actor is None:
            if await self._users.count() == 0:
                body["onboarding"] = True
            return body
        if actor.is_verified:
            body["features"]["enable_api_keys"] = self._runtime.flag("ENABLE_API_KEYS")
            # No model is preselected; clients of this API family expect the key.
            body["default_models"] = None
            body["permissions"] = self._permissions.defaults()
        return body

    async def _features(self) -> dict[str, bool]:
        """Return what there is: accounts, passwords and events by websocket.

        Sign-in by LDAP, by the header of a proxy and by a provider is not there.
        """
        return {
            "auth": True,
            "auth_trusted_header": False,
            "enable_signup_password_confirmation": False,
            "enable_ldap": False,
            "enable_signup": await self._sign_up.is_open(),
            "enable_login_form": self._facts.enable_login_form,
            "enable_websocket": True,
        }
