"""Rules for the creation and use of API keys: the global switch, the permission and the endpoint list."""

from dataclasses import dataclass

from gatewayd.accounts import endpoints
from gatewayd.accounts.interfaces import GroupStore
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import PermissionTree, Role, User
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.errors import ErrorKind, GatewayError


@dataclass(frozen=True, slots=True)
class UserRights:
    """The groups of a user, and the permissions that they and the defaults add up to."""

    group_ids: tuple[str, ...]
    permissions: PermissionTree


class KeyRules:
    """Computes the rights of a user, and checks API keys by switch, permission and endpoint list."""

    def __init__(self, groups: GroupStore, permissions: Permissions, runtime: RuntimeSettings) -> None:
        self._groups = groups
        self._permissions = permissions
        self._runtime = runtime
        self._text = ""
        self._entries: tuple[endpoints.EndpointRule, ...] = ()

    async def rights(self, user: User) -> UserRights:
        """Return the effective rights of a user, read from the store."""
        groups = await self._groups.list(user_id=user.id)
        return UserRights(
            tuple(group.id for group in groups), self._permissions.effective_permissions(user, groups)
        )

    def missing(self, user: User, permissions: PermissionTree) -> list[str]:
        """Return a sentence for each reason why this user may not have API keys."""
        sentences = []
        if not user.active:
            sentences.append("the account is deactivated")
        if not self._runtime.flag("ENABLE_API_KEYS"):
            sentences.append("API keys are switched off for everybody (setting ENABLE_API_KEYS)")
        if not permissions.get("features", {}).get("api_keys", False):
            sentences.append(_permission_sentence(user))
        return sentences

    def check(self, user: User, permissions: PermissionTree, verb: str) -> None:
        """Raise forbidden ("cannot use an API key: ...") with all reasons; `verb` is create, use, ..."""
        if (
            user.active
            and self._runtime.flag("ENABLE_API_KEYS")
            and permissions.get("features", {}).get("api_keys", False)
        ):
            return
        sentences = self.missing(user, permissions)
        if sentences:
            code = "api_key_permission" if self._runtime.flag("ENABLE_API_KEYS") else "api_keys_disabled"
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot {verb} an API key: {'; '.join(sentences)}", code=code
            )

    def check_endpoint(self, method: str, path: str) -> None:
        """Raise forbidden if keys are restricted to endpoints that do not cover this request."""
        if not self._runtime.flag("ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS"):
            return
        text = self._runtime.text("API_KEYS_ALLOWED_ENDPOINTS")
        if text != self._text:
            self._text, self._entries = text, endpoints.parse(text)
        if not endpoints.allows(self._entries, method, path):
            raise GatewayError(
                ErrorKind.FORBIDDEN,
                f"cannot use an API key for {path}: API_KEYS_ALLOWED_ENDPOINTS does not list this endpoint",
                code="api_key_endpoint",
            )


def _permission_sentence(user: User) -> str:
    if user.role is Role.USER:
        return "neither the default permissions nor a group of this user has features.api_keys"
    return (
        "no group of this user has features.api_keys"
        f" (the default permissions do not apply to the role {user.role})"
    )
