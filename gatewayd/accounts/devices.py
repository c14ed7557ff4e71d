"""Device cookies, which mark a browser in which an account signed in before (OWASP, device cookies)."""

import hashlib
import hmac
from typing import Final

from gatewayd import ids

LIFE_SECONDS: Final = 31_536_000
MAX_CHARACTERS: Final = 200
NONCE_BYTES: Final = 16


class DeviceCookies:
    """Issues and reads device cookies: signed, for one account each, in the form `nonce.end.signature`.

    A device cookie grants no right. Failed sign-ins of its browser have a counter of their own.
    """

    def __init__(self, secret: str, clock: ids.Clock = ids.now) -> None:
        self._key = hashlib.sha256(b"device\0" + secret.encode()).digest()
        self._clock = clock

    def issue(self, email: str) -> str:
        """Return a new device cookie for the account with this address (a value of `email_key`)."""
        head = f"{ids.new_secret(NONCE_BYTES)}.{self._clock() + LIFE_SECONDS}"
        return f"{head}.{self._sign(email, head)}"

    def find(self, email: str, cookie: str) -> str | None:
        """Return the nonce of a device cookie; None unless it is valid for this account now."""
        if not cookie or len(cookie) > MAX_CHARACTERS or not cookie.isascii():
            return None
        head, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature, self._sign(email, head)):
            return None
        nonce, _, ends = head.partition(".")
        return nonce if int(ends) > self._clock() else None

    def _sign(self, email: str, head: str) -> str:
        return hmac.new(self._key, f"{email}\0{head}".encode(), hashlib.sha256).hexdigest()
