"""Identifiers, secrets and the clock, replaceable in tests."""

import hashlib
import secrets
import time
import uuid
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns the current time as whole seconds since the epoch (UTC)."""


def now() -> int:
    """Return the current time in whole epoch seconds, the unit of every stored timestamp."""
    return int(time.time())  # noqa: TID251 - this is the clock's home


def new_id() -> str:
    """Return a random UUIDv4 as text, the form of every id that the gateway chooses."""
    return str(uuid.uuid4())


def new_secret(size: int = 32) -> str:
    """Return `size` random bytes as lower-case hexadecimal text."""
    return secrets.token_hex(size)


def digest(secret: str) -> str:
    """Return the SHA-256 of a whole secret as hexadecimal text, the only form in which secrets are stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
