"""Encryption of stored texts with keys that are derived from the gateway's secret.

The only importer of `cryptography`. An encrypted text begins with ENCRYPTED_PREFIX. Each use has its own key:
a text of one use cannot be read as one of another.
"""

import base64
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ENCRYPTED_PREFIX: Final = "sealed:1:"


class DecryptionError(ValueError):
    """A text was encrypted with another key, or is damaged."""


class TextCipher:
    """Encrypts and decrypts texts for one use, which `use` names."""

    def __init__(self, secret: bytes, use: bytes) -> None:
        key = HKDF(SHA256(), 32, salt=None, info=use).derive(secret)
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def encrypt(self, text: str) -> str:
        """Return the encrypted text, in ASCII; it contains the present time."""
        return f"{ENCRYPTED_PREFIX}{self._fernet.encrypt(text.encode()).decode()}"

    def decrypt(self, encrypted: str) -> str:
        """Return the text; raise DecryptionError."""
        try:
            return self._fernet.decrypt(encrypted.removeprefix(ENCRYPTED_PREFIX)).decode()
        except (InvalidToken, ValueError) as error:
            raise DecryptionError("encrypted with another key, or damaged") from error
