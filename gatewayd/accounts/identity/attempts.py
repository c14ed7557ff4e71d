"""Attempts to sign in at a provider: each lives in one encrypted cookie of the browser, and is used once."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.interfaces import IdentityStore
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.encryption import DecryptionError, SecretKeys, TextCipher
from gatewayd.errors import GatewayError
from gatewayd.urls import split_url

ATTEMPT_USE: Final = b"gatewayd attempts to sign in at a provider"
"""Use of the key that encrypts the cookies."""

LIFE_SECONDS: Final = 600
MAX_ATTEMPTS_PER_BROWSER: Final = 5
MAX_COOKIE_CHARACTERS: Final = 3072
MAX_RETURN_CHARACTERS: Final = 256
"""Longest return path: the cookies of all attempts of a browser fit into one header of 8 KiB."""

COOKIE_PREFIX: Final = "oauth-"
STATE_CHARACTERS_IN_NAME: Final = 8
BASE: Final = "http://gateway.invalid"


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """One attempt. `user_id` is the account to link the identity to, "" for a sign-in."""

    provider: str
    issuer: str
    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    return_path: str = "/"
    user_id: str = ""
    started_at: int = 0

    @property
    def is_secure(self) -> bool:
        """Whether the browser comes back by HTTPS."""
        return self.redirect_uri.startswith("https:")

    @property
    def challenge(self) -> str:
        """The code challenge S256 of the verifier (RFC 7636, 4.2)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class SignInAttempts:
    """Begins attempts and takes them back, at most once each, in any process."""

    def __init__(self, secret: bytes | SecretKeys, store: IdentityStore, clock: ids.Clock = ids.now) -> None:
        self._cipher = TextCipher(secret, ATTEMPT_USE)
        self._store = store
        self._clock = clock

    def begin(
        self, provider: str, issuer: str, redirect_uri: str, *, return_path: str = "/", user_id: str = ""
    ) -> tuple[SignInAttempt, str]:
        """Return a new attempt, and the value of its cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = SignInAttempt(
            provider, issuer, state, nonce, verifier, redirect_uri, return_path, user_id, self._clock()
        )
        return attempt, self._cipher.encrypt(json.dumps(asdict(attempt)))

    async def take(self, cookies: Mapping[str, str], provider: str, state: str) -> SignInAttempt:
        """Return the attempt of a callback and mark its state as used; raise forbidden (`state`).

        `cookies` are those of the browser. Another site of the domain, or someone on the way, can set one
        without the prefix that binds it to the host, so it is not accepted for an attempt by HTTPS.
        """
        secure, plain = (cookies.get(cookie_name(state, is_secure=each), "") for each in (True, False))
        attempt = self._read(secure or plain)
        if attempt is None:
            raise _bad("this browser has no such attempt")
        if not hmac.compare_digest(attempt.state.encode(), state.encode("utf-8", "replace")):
            raise _bad("the state is another one")
        if attempt.is_secure and not secure:
            raise _bad("the cookie is not bound to the host")
        if attempt.provider != provider:
            raise _bad("the attempt was begun at another provider")
        if not 0 <= self._clock() - attempt.started_at <= LIFE_SECONDS:
            raise _bad("the attempt is too old")
        expires_at = attempt.started_at + LIFE_SECONDS
        if not await self._store.use_once(ids.digest(f"state {attempt.state}"), expires_at):
            raise _bad("the state was used before")
        return attempt

    def surplus(self, cookies: Mapping[str, str]) -> Sequence[str]:
        """Return the names among the cookies of attempts that must go, so that one more may come: those that
        are not valid or too old, and the oldest ones over the limit."""
        ages = {name: self._age(value) for name, value in cookies.items()}
        valid = sorted((age, name) for name, age in ages.items() if age is not None)
        kept = {name for _, name in valid[: MAX_ATTEMPTS_PER_BROWSER - 1]}
        return [name for name in cookies if name not in kept]

    def _age(self, cookie: str) -> int | None:
        attempt = self._read(cookie)
        age = LIFE_SECONDS + 1 if attempt is None else self._clock() - attempt.started_at
        return age if 0 <= age <= LIFE_SECONDS else None

    def _read(self, cookie: str) -> SignInAttempt | None:
        if not cookie or len(cookie) > MAX_COOKIE_CHARACTERS:
            return None
        try:
            return SignInAttempt(**json.loads(self._cipher.decrypt(cookie)))
        except DecryptionError:
            return None


def cookie_name(state: str, *, is_secure: bool) -> str:
    """Return the name of the cookie of an attempt; a secure one is bound to the host (RFC 6265bis, 4.1.3)."""
    kept = "".join(char for char in state[:STATE_CHARACTERS_IN_NAME] if char.isascii() and char.isalnum())
    return f"{'__Host-' if is_secure else ''}{COOKIE_PREFIX}{kept}"


def is_attempt_cookie(name: str) -> bool:
    """Tell whether a cookie is that of an attempt."""
    return name.removeprefix("__Host-").startswith(COOKIE_PREFIX)


def safe_path(path: str) -> str:
    """Return a path of this gateway to return to, "/" for what a browser may take for another site."""
    if not path.startswith("/") or len(path) > MAX_RETURN_CHARACTERS or not path.isascii():
        return "/"
    if not path.isprintable() or "\\" in path or " " in path:
        return "/"
    # A percent-encoded slash may be decoded before the path is used.
    if path.replace("%2f", "/").replace("%2F", "/").replace("%5c", "/").replace("%5C", "/").startswith("//"):
        return "/"
    if path.startswith(("/oauth/", "/api/")):
        return "/"
    parts = split_url(BASE + path)
    return path if f"{parts.scheme}://{parts.netloc}" == BASE else "/"


def _bad(reason: str) -> GatewayError:
    return refuse(RefusalCode.STATE, reason)
