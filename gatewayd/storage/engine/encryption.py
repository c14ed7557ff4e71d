"""Valves as they are stored: as they are, or sealed under a key that is made of the gateway's secret.

What is sealed is a JSON text that begins with MARK, what is not is an object; so both are read, whatever is
written now.
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
"""The code of the error for valves that cannot be opened."""

DERIVATION_INFO: Final = b"gatewayd valves of plugins"


class ValveCipher:
    """Writes and reads valves. Without a secret it neither seals nor opens."""

    def __init__(self, secret: bytes | None, *, sealing: bool = True) -> None:
        self._fernet = None if secret is None else Fernet(_key_of(secret))
        self._sealing = sealing

    def encode(self, values: dict[str, Any]) -> str:
        """Return the text of a `Json` column; invalid_request naming `valves` for what cannot be stored."""
        text = encode(values, "valves")
        if self._fernet is None or not self._sealing:
            return text
        return encode(f"{ENCRYPTED_PREFIX}{self._fernet.encrypt(text.encode()).decode()}", "valves")

    def decode(self, text: str, whose: str) -> dict[str, Any]:
        """Return the values; not_configured, naming `whose` ("function weather"), when it cannot."""
        found = decode(text, f"the valves of {whose}")
        if isinstance(found, str):
            found = decode(self._open(found, whose), f"the valves of {whose}")
        values: dict[str, Any] = found
        return values

    def _open(self, sealed: str, whose: str) -> str:
        if self._fernet is None:
            raise _refusal(whose, "they are encrypted, and there is no secret key")
        try:
            return self._fernet.decrypt(sealed.removeprefix(ENCRYPTED_PREFIX)).decode()
        except InvalidToken as error:
            raise _refusal(whose, "they were encrypted with another secret key, or are damaged") from error


def _key_of(secret: bytes) -> bytes:
    return base64.urlsafe_b64encode(HKDF(SHA256(), 32, salt=None, info=DERIVATION_INFO).derive(secret))


def _refusal(whose: str, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED, f"cannot read the valves of {whose}: {reason}", code=UNREADABLE_CODE
    )
