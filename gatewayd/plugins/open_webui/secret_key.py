"""The secret that plugins get, from which that of the gateway cannot be found."""

import hashlib
import hmac
from typing import Final

DERIVATION_INFO: Final = b"gatewayd plugins"


def derive_secret(secret_key: str) -> str:
    """Return 64 hexadecimal digits for plugins, always the same for one secret (HKDF with SHA-256, RFC 5869).

    Empty when there is no secret, which plugins take as: do not encrypt.
    """
    if not secret_key:
        return ""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), secret_key.encode(), "sha256")
    return hmac.digest(extracted, DERIVATION_INFO + b"\x01", "sha256").hex()
