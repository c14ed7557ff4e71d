"""Identity headers: name user, chat and message to servers if a setting permits it; never credentials."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from gatewayd.catalog.interfaces import CallContext
from gatewayd.completions.json_access import as_mapping
from gatewayd.plugins.runtime.context import CallScope

CHAT_HEADER: Final = "X-Service-Chat-Id"
MESSAGE_HEADER: Final = "X-Service-Message-Id"

OTHER_NAMES: Final = {CHAT_HEADER: "X-OpenWebUI-Chat-Id", MESSAGE_HEADER: "X-OpenWebUI-Message-Id"}
"""Header names of Open WebUI, sent in addition to the default names."""

MAX_VALUE_CHARACTERS: Final = 1000
"""Maximum number of characters of a value."""

VISIBLE: Final = "".join(map(chr, range(0x20, 0x7F)))
"""Characters that a header contains unchanged; all others are URL-quoted."""

_PLACEHOLDER: Final = re.compile(r"\{\{([A-Z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class IdentityHeaders:
    """Factory of the headers; the fields are the header names."""

    user_name: str = "X-OpenWebUI-User-Name"
    user_id: str = "X-OpenWebUI-User-Id"
    user_email: str = "X-OpenWebUI-User-Email"
    user_role: str = "X-OpenWebUI-User-Role"
    chat_id: str = CHAT_HEADER
    message_id: str = MESSAGE_HEADER

    def for_tool(self, scope: CallScope) -> dict[str, str]:
        """Return the headers for a tool server: user, chat and message."""
        user, target = scope.actor.user, scope.target
        headers = self._user(user.id, user.name, user.email, user.role.value)
        headers |= _session(self.chat_id, target.chat_id)
        return headers | _session(self.message_id, target.message_id)

    def for_model(self, context: CallContext) -> dict[str, str]:
        """Return the headers for a model provider: user and chat."""
        headers = self._user(context.user_id, context.user_name, context.user_email, context.user_role)
        return headers | _session(self.chat_id, context.chat_id)

    def _user(self, user_id: str, name: str, email: str, role: str) -> dict[str, str]:
        headers = {
            self.user_name: quote_name(name),
            self.user_id: quote_value(user_id),
            self.user_email: quote_value(email),
            self.user_role: quote_value(role),
        }
        return {header: value for header, value in headers.items() if value}


def fill_placeholders(headers: Mapping[str, str], scope: CallScope) -> dict[str, str]:
    """Return headers with values for placeholders such as `{{CHAT_ID}}`; unknown placeholders stay.

    A value that a call does not have, for example a file, is empty.
    """
    if not has_placeholders(headers):
        return dict(headers)
    values = _values(scope)
    return {name: _filled(value, values) for name, value in headers.items()}


def has_placeholders(headers: Mapping[str, str]) -> bool:
    """Return whether values depend on the call."""
    return any("{{" in value for value in headers.values())


def without_placeholders(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that do not depend on the call."""
    return {name: value for name, value in headers.items() if "{{" not in value}


def quote_value(value: str) -> str:
    """Return a value for a header; characters outside of visible ASCII are URL-quoted."""
    return quote(value[:MAX_VALUE_CHARACTERS].strip(), safe=VISIBLE, errors="replace")


def quote_name(name: str) -> str:
    """Return the name of a user, URL-quoted except for blanks."""
    return quote(name[:MAX_VALUE_CHARACTERS].strip(), safe=" ", errors="replace")


def _session(header: str, value: str) -> dict[str, str]:
    if not value:
        return {}
    other = OTHER_NAMES.get(header.title())
    return dict.fromkeys((header,) if other is None else (header, other), quote_value(value))


def _filled(value: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), value)


def _values(scope: CallScope) -> dict[str, str]:
    user, target, metadata = scope.actor.user, scope.target, scope.metadata
    groups = ",".join(scope.actor.group_ids)
    files = scope.files or [{}]
    file = as_mapping(files[0])
    stored = as_mapping(file.get("file"))
    values: dict[str, Any] = {
        "CHAT_ID": target.chat_id,
        "MESSAGE_ID": target.message_id,
        "USER_MESSAGE_ID": metadata.get("user_message_id"),
        "USER_MESSAGE_PARENT_ID": as_mapping(metadata.get("user_message")).get("parentId"),
        "USER_ID": user.id,
        "USER_EMAIL": user.email,
        "USER_ROLE": user.role.value,
        "USER_GROUPS": groups,
        "USER_GROUP_IDS": groups,
        "USER_AGENT": metadata.get("user_agent"),
        "TASK": scope.task,
        "FILE_ID": file.get("id") or stored.get("id"),
        "FILE_NAME": file.get("name") or stored.get("filename"),
        "FILE_CONTENT_TYPE": file.get("content_type") or as_mapping(stored.get("meta")).get("content_type"),
    }
    texts = {name: quote_value(value) if isinstance(value, str) else "" for name, value in values.items()}
    return texts | {"USER_NAME": quote_name(user.name)}
