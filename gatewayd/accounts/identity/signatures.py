"""Signatures of JSON web tokens of providers (RFC 7515, RFC 7519).

The only importer of `joserfc`, the maintained successor of Authlib's part for JOSE. python-jose, which signs
our own sessions, is hardly released any more, knows no EdDSA, and had confusions of algorithms with the keys
of others. The library gets one key and one algorithm, which this module has chosen.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import import_key

from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.providers import JsonObject
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.errors import GatewayError

MAX_TOKEN_CHARACTERS: Final = 64 * 1024
MAX_HEADER_CHARACTERS: Final = 4096
MAX_MODULUS_CHARACTERS: Final = 1400
"""Longest modulus of an RSA key in base64url: 8192 bits."""

FORBIDDEN_HEADERS: Final = frozenset({"crit", "jwk", "jku", "x5u", "b64"})
KEY_TYPES: Final = {"R": "RSA", "P": "RSA", "E": "EC"}
"""Key type by the first letter of an algorithm; EdDSA is told apart before."""


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """The header of a token whose signature is not checked yet."""

    algorithm: str
    key_id: str | None
    type: str | None

    def fits(self, key: JsonObject) -> bool:
        """Tell whether a key of the provider may have signed the token."""
        kind = "OKP" if self.algorithm == "EdDSA" else KEY_TYPES[self.algorithm[0]]
        return (
            key.get("kty") == kind
            and key.get("use") in (None, "sig")
            and key.get("alg") in (None, self.algorithm)
            and (self.key_id is None or key.get("kid") == self.key_id)
            and len(str(key.get("n", ""))) <= MAX_MODULUS_CHARACTERS
        )


def read_header(token: str, algorithms: Sequence[str]) -> TokenHeader:
    """Return the header of a token; raise forbidden for one that is not accepted.

    `algorithms` are those of the provider; "none" and signatures with a shared secret are never among them.
    """
    head = token.partition(".")[0]
    is_compact = len(token) <= MAX_TOKEN_CHARACTERS and token.isascii() and token.count(".") == 2
    if not is_compact or len(head) > MAX_HEADER_CHARACTERS:
        raise _bad("it is not a signed token")
    header = _decode(head)
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise _bad("its algorithm is not one of the provider")
    if FORBIDDEN_HEADERS & header.keys():
        raise _bad(f"its header has {', '.join(sorted(FORBIDDEN_HEADERS & header.keys()))}")
    if not isinstance(key_id, str | None) or not isinstance(kind, str | None):
        raise _bad("its header has a wrong type")
    return TokenHeader(algorithm, key_id, kind)


def read_claims(token: str) -> dict[str, Any]:
    """Return the claims of a token without a check of its signature."""
    return _decode(token.split(".")[1])


def verify(token: str, header: TokenHeader, keys: Sequence[JsonObject]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed; raise forbidden otherwise.

    A token without a key id needs a provider with one fitting key.
    """
    fitting = [key for key in keys if header.fits(key)]
    if not fitting:
        raise _bad("the provider has no such key")
    if header.key_id is None and len(fitting) > 1:
        raise _bad("it does not name its key")
    try:
        found = jws.deserialize_compact(token, import_key(dict(fitting[0])), algorithms=[header.algorithm])
    except (JoseError, KeyError, ValueError, TypeError) as error:
        raise _bad("its signature is not valid") from error
    return _object(found.payload)


def _decode(part: str) -> dict[str, Any]:
    try:
        return _object(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _bad("it is not a signed token") from error


def _object(payload: bytes) -> dict[str, Any]:
    try:
        # It refuses lone surrogates, which neither a digest nor a database can take.
        found = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise _bad("it is not JSON") from error
    if not isinstance(found, dict):
        raise _bad("it is not a JSON object")
    return found


def _bad(reason: str) -> GatewayError:
    return refuse(RefusalCode.PROVIDER, f"the token cannot be used: {reason}")
