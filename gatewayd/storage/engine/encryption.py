"""Encryption of stored valves with a key that is derived from the gateway's secret.

Encrypted valves are a JSON string that begins with ENCRYPTED_PREFIX, plain ones are a JSON object, so both
can be read whether or not encryption is enabled.
"""

import base64
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.fields import decode, encode

ENCRYPTED_PREFIX: Final = "sealed:1:"
UNREADABLE_CODE: Final = "valves_sealed"
"""Error code of valves that cannot be decrypted."""

DERIVATION_INFO: Final = b"gatewayd valves of plugins"


class ValveCipher:
    """Encodes and decodes valves. Without a secret it neither encrypts nor decrypts."""

    def __init__(self, secret: bytes | None, *, encrypt: bool = True) -> None:
        self._fernet = None if secret is None else Fernet(_key_of(secret))
        self._encrypts = encrypt

    def encode(self, values: dict[str, Any]) -> str:
        """Return the text for a `JsonColumn`; invalid_request naming `valves` for an unstorable value."""
        text = encode(values, "valves")
        if self._fernet is None or not self._encrypts:
            return text
        return encode(f"{ENCRYPTED_PREFIX}{self._fernet.encrypt(text.encode()).decode()}", "valves")

    def decode(self, text: str, owner: str) -> dict[str, Any]:
        """Return the values; not_configured, naming `owner` ("function weather"), if decryption fails."""
        found = decode(text, f"the valves of {owner}")
        if isinstance(found, str):
            found = decode(self._decrypt(found, owner), f"the valves of {owner}")
        values: dict[str, Any] = found
        return values

    def _decrypt(self, encrypted: str, owner: str) -> str:
        if self._fernet is None:
            raise _refusal(owner, "they are encrypted, and there is no secret key")
        try:
            return self._fernet.decrypt(encrypted.removeprefix(ENCRYPTED_PREFIX)).decode()
        except InvalidToken as error:
            raise _refusal(owner, "they were encrypted with another secret key, or are damaged") from error


def _key_of(secret: bytes) -> bytes:
    return base64.urlsafe_b64encode(HKDF(SHA256(), 32, salt=None, info=DERIVATION_INFO).derive(secret))


def _refusal(owner: str, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED, f"cannot read the valves of {owner}: {reason}", code=UNREADABLE_CODE
    )
