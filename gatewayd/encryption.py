"""Encryption of stored texts with keys that are derived from the gateway's secret, and of backed up secrets.

The only importer of `cryptography`. An encrypted text begins with ENCRYPTED_PREFIX. Each use has its own key:
a text of one use cannot be read as one of another.
"""

import base64
import os
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

ENCRYPTED_PREFIX: Final = "sealed:1:"

PASSPHRASE_MAGIC: Final = b"gatewayd passphrase 1\n"
"""The begin of bytes that a passphrase seals; a salt, a nonce and the AES-GCM text follow."""

SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
SCRYPT_COST: Final = 2**17
"""Cost of scrypt (RFC 7914, section 2) with blocks of 8: 128 MiB of memory, half a second."""


class DecryptionError(ValueError):
    """A text was encrypted with another key, or is damaged."""


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """The secret of the gateway, and those that it replaced, which still decrypt."""

    current: bytes
    former: tuple[bytes, ...] = ()


class TextCipher:
    """Encrypts texts for one use, which `use` names, and decrypts them, also those of a former secret."""

    def __init__(self, secret: bytes | SecretKeys, use: bytes) -> None:
        keys = secret if isinstance(secret, SecretKeys) else SecretKeys(secret)
        self._current = _fernet(keys.current, use)
        self._fernet = MultiFernet([self._current, *(_fernet(each, use) for each in keys.former)])

    def encrypt(self, text: str) -> str:
        """Return the encrypted text, in ASCII; it contains the present time."""
        return f"{ENCRYPTED_PREFIX}{self._fernet.encrypt(text.encode()).decode()}"

    def renew(self, encrypted: str) -> str | None:
        """Return a text encrypted with the present secret; None if it is, or cannot be decrypted at all."""
        token = encrypted.removeprefix(ENCRYPTED_PREFIX)
        try:
            self._current.decrypt(token)
        except (InvalidToken, ValueError):
            try:
                return f"{ENCRYPTED_PREFIX}{self._fernet.rotate(token).decode()}"
            except (InvalidToken, ValueError):
                return None
        return None

    def decrypt(self, encrypted: str) -> str:
        """Return the text; raise DecryptionError."""
        try:
            return self._fernet.decrypt(encrypted.removeprefix(ENCRYPTED_PREFIX)).decode()
        except (InvalidToken, ValueError) as error:
            raise DecryptionError("encrypted with another key, or damaged") from error


def _fernet(secret: bytes, use: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(HKDF(SHA256(), 32, salt=None, info=use).derive(secret)))


def encrypt_with_passphrase(data: bytes, passphrase: str) -> bytes:
    """Return bytes that only the passphrase opens."""
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    sealed = AESGCM(_passphrase_key(passphrase, salt)).encrypt(nonce, data, PASSPHRASE_MAGIC)
    return PASSPHRASE_MAGIC + salt + nonce + sealed


def decrypt_with_passphrase(sealed: bytes, passphrase: str) -> bytes:
    """Return the bytes; raise DecryptionError for another passphrase, and for damaged bytes."""
    start = len(PASSPHRASE_MAGIC)
    salt = sealed[start : start + SALT_BYTES]
    nonce = sealed[start + SALT_BYTES : start + SALT_BYTES + NONCE_BYTES]
    rest = sealed[start + SALT_BYTES + NONCE_BYTES :]
    if not sealed.startswith(PASSPHRASE_MAGIC) or len(nonce) != NONCE_BYTES:
        raise DecryptionError("not encrypted with a passphrase")
    try:
        return AESGCM(_passphrase_key(passphrase, salt)).decrypt(nonce, rest, PASSPHRASE_MAGIC)
    except InvalidTag as error:
        raise DecryptionError("encrypted with another passphrase, or damaged") from error


def _passphrase_key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(passphrase.encode())
