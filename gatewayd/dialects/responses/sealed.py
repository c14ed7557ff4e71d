"""Reasoning and summaries that callers keep for the gateway, encrypted so that only it can read them; pure.

The field `encrypted_content` carries what a source needs unchanged in the next turn: reasoning, signatures
and opaque members of calls. A text is bound to the user who received it.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import orjson

from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.encryption import ENCRYPTED_PREFIX, DecryptionError, TextCipher

SEAL_USE: Final = b"gatewayd reasoning of responses"

MAX_SEALED_CHARACTERS: Final = 2 * 1024 * 1024
"""Maximum length of an encrypted text, because its decryption cannot be interrupted."""

MAX_CONTENT_BYTES: Final = 1024 * 1024
"""Maximum size of content as JSON; its encrypted text is below MAX_SEALED_CHARACTERS."""

_USER: Final = "user"
_KIND: Final = "kind"
_CONTENT: Final = "content"


class ContentSeal(Protocol):
    """Encrypts and decrypts the content of items for one user."""

    def close(self, kind: str, content: Mapping[str, Any]) -> str | None:
        """Return a text for `encrypted_content` of an item of type `kind`; None for too large content."""
        ...

    def open(self, kind: str, sealed: str) -> Body | None:
        """Return the content; None if it is foreign, damaged, or another user's."""
        ...


class UserSeal:
    """The seal of one user; implements `ContentSeal`."""

    def __init__(self, cipher: TextCipher, user_id: str) -> None:
        self._cipher = cipher
        self._user_id = user_id

    def close(self, kind: str, content: Mapping[str, Any]) -> str | None:
        """Return the encrypted content; None if it is too large."""
        whole = orjson.dumps({_USER: self._user_id, _KIND: kind, _CONTENT: dict(content)})
        return self._cipher.encrypt(whole.decode()) if len(whole) <= MAX_CONTENT_BYTES else None

    def open(self, kind: str, sealed: str) -> Body | None:
        """Return the content of an own text."""
        if not is_sealed(sealed) or len(sealed) > MAX_SEALED_CHARACTERS:
            return None
        try:
            found = as_mapping(orjson.loads(self._cipher.decrypt(sealed)))
        except (DecryptionError, orjson.JSONDecodeError):
            return None
        if found.get(_USER) != self._user_id or found.get(_KIND) != kind:
            return None
        return dict(as_mapping(found.get(_CONTENT)))


def is_sealed(value: object) -> bool:
    """Return True if a text has the form of those that the gateway encrypts."""
    return isinstance(value, str) and value.startswith(ENCRYPTED_PREFIX)
