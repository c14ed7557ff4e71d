"""Encryption of stored valves with a key that is derived from the gateway's secret.

Encrypted valves are a JSON string of `gatewayd.encryption`, plain ones are a JSON object, so both can be read
whether or not encryption is enabled.
"""

from typing import Any, Final

from gatewayd.encryption import DecryptionError, SecretKeys, TextCipher
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.fields import decode, encode

UNREADABLE_CODE: Final = "valves_sealed"
"""Error code of valves that cannot be decrypted."""

DERIVATION_INFO: Final = b"gatewayd valves of plugins"


class ValveCipher:
    """Encodes and decodes valves. Without a secret it neither encrypts nor decrypts."""

    def __init__(self, secret: bytes | SecretKeys | None, *, encrypt: bool = True) -> None:
        self._cipher = None if secret is None else TextCipher(secret, DERIVATION_INFO)
        self._encrypts = encrypt

    def encode(self, values: dict[str, Any]) -> str:
        """Return the text for a `JsonColumn`; invalid_request naming `valves` for an unstorable value."""
        text = encode(values, "valves")
        if self._cipher is None or not self._encrypts:
            return text
        return encode(self._cipher.encrypt(text), "valves")

    def decode(self, text: str, owner: str) -> dict[str, Any]:
        """Return the values; not_configured, naming `owner` ("function weather"), if decryption fails."""
        found = decode(text, f"the valves of {owner}")
        if isinstance(found, str):
            found = decode(self._decrypt(found, owner), f"the valves of {owner}")
        values: dict[str, Any] = found
        return values

    def _decrypt(self, encrypted: str, owner: str) -> str:
        if self._cipher is None:
            raise _refusal(owner, "they are encrypted, and there is no secret key")
        try:
            return self._cipher.decrypt(encrypted)
        except DecryptionError as error:
            raise _refusal(owner, "they were encrypted with another secret key, or are damaged") from error


def _refusal(owner: str, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED, f"cannot read the valves of {owner}: {reason}", code=UNREADABLE_CODE
    )
