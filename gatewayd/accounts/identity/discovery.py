"""Descriptions and keys of providers: fetched at sign-in, checked, and kept while they cannot be fetched."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.interfaces import ProviderTransport
from gatewayd.accounts.identity.providers import (
    SIGNATURE_ALGORITHMS,
    WELL_KNOWN,
    JsonObject,
    ProviderKind,
    ProviderMetadata,
    ProviderOptions,
)
from gatewayd.accounts.identity.records import MAX_ISSUER_CHARACTERS, RefusalCode
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.keyed_locks import KeyedLocks
from gatewayd.urls import split_url

log = logging.getLogger(__name__)

METADATA_SECONDS: Final = 3600
"""Age from which a description is fetched again; the old one is used if that fails."""

KEY_REFETCH_SECONDS: Final = 60
"""Time between two fetches of keys because of an unknown key id."""

RETRY_SECONDS: Final = 10
"""Time before the next try after a failure."""

MAX_KEYS: Final = 100
MAX_ENDPOINT_CHARACTERS: Final = 2048

GITHUB: Final = ProviderMetadata(
    issuer="https://github.com",
    authorization_endpoint="https://github.com/login/oauth/authorize",
    token_endpoint="https://github.com/login/oauth/access_token",  # noqa: S106 - an address
    userinfo_endpoint="https://api.github.com/user",
    secret_in_body=True,
)


FEISHU: Final = ProviderMetadata(
    issuer="https://accounts.feishu.cn",
    authorization_endpoint="https://accounts.feishu.cn/open-apis/authen/v1/authorize",
    token_endpoint="https://open.feishu.cn/open-apis/authen/v2/oauth/token",  # noqa: S106 - an address
    userinfo_endpoint="https://open.feishu.cn/open-apis/authen/v1/user_info",
    secret_in_body=True,
    takes_json=True,
)


@dataclass(slots=True)
class _Known:
    """What is known of a provider; `asked_at` is the time of the last try to fetch its keys."""

    metadata: ProviderMetadata
    at: int
    keys: Sequence[JsonObject] = ()
    keys_at: int | None = None
    asked_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    """A description that could not be fetched or used, so that waiting sign-ins do not all try again."""

    code: str
    message: str
    at: int


class ProviderDirectory:
    """Descriptions and keys of providers by their options."""

    def __init__(self, transport: ProviderTransport, clock: ids.Clock = ids.now) -> None:
        self._transport = transport
        self._clock = clock
        self._known: dict[ProviderOptions, _Known] = {}
        self._failures: dict[ProviderOptions, _Failure] = {}
        self._locks = KeyedLocks[str]()

    def keep(self, chosen: Sequence[ProviderOptions]) -> None:
        """Forget what is known of other providers."""
        self._known = {options: known for options, known in self._known.items() if options in chosen}
        self._failures = {}

    async def metadata(self, options: ProviderOptions) -> ProviderMetadata:
        """Return the description; raise forbidden, `unreachable` or `provider` for one that is not valid."""
        return (await self._find(options)).metadata

    async def keys(
        self, options: ProviderOptions, has_key: Callable[[JsonObject], bool]
    ) -> Sequence[JsonObject]:
        """Return the keys of a provider.

        They are fetched again after an hour, so that a withdrawn key is forgotten, and, at most once a
        minute, if none fits. If that fails, fitting keys are used on.
        """
        known = await self._find(options)
        async with self._locks.of(f"keys {options.name}"):
            fits = any(has_key(key) for key in known.keys)
            is_old = known.keys_at is None or self._age(known.keys_at) >= METADATA_SECONDS
            is_due = known.asked_at is None or self._age(known.asked_at) >= KEY_REFETCH_SECONDS
            if is_due and (is_old or not fits):
                await self._fetch_keys(options, known, may_fail=fits)
        return known.keys

    async def _fetch_keys(self, options: ProviderOptions, known: _Known, *, may_fail: bool) -> None:
        known.asked_at = self._clock()
        try:
            known.keys = _keys(await self._transport.get_json(options, known.metadata.jwks_uri))
        except GatewayError as error:
            known.asked_at -= KEY_REFETCH_SECONDS - RETRY_SECONDS
            if not may_fail or error.code != RefusalCode.UNREACHABLE:
                raise
            log.warning("keys of a provider not renewed: %s", error.message)
        else:
            known.keys_at = known.asked_at

    async def _find(self, options: ProviderOptions) -> _Known:
        if options.kind is ProviderKind.GITHUB:
            return _Known(GITHUB, 0)
        if options.kind is ProviderKind.FEISHU:
            return _Known(FEISHU, 0)
        async with self._locks.of(f"metadata {options.name}"):
            known, failure = self._known.get(options), self._failures.get(options)
            if known is not None and self._age(known.at) < METADATA_SECONDS:
                return known
            if failure is not None and self._age(failure.at) < RETRY_SECONDS:
                raise GatewayError(ErrorKind.FORBIDDEN, failure.message, code=failure.code)
            try:
                return await self._fetch(options, known)
            except GatewayError as error:
                if known is not None and error.code == RefusalCode.UNREACHABLE:
                    log.warning("description of a provider not renewed: %s", error.message)
                    known.at = self._clock() - METADATA_SECONDS + KEY_REFETCH_SECONDS
                    return known
                self._failures[options] = _Failure(error.code or "", error.message, self._clock())
                raise

    async def _fetch(self, options: ProviderOptions, known: _Known | None) -> _Known:
        metadata = _checked(options, await self._transport.get_json(options, options.discovery_url))
        await self._transport.check_endpoints(options, metadata)
        found = _Known(metadata, self._clock())
        if known is not None and known.metadata.jwks_uri == metadata.jwks_uri:
            found.keys, found.keys_at, found.asked_at = known.keys, known.keys_at, known.asked_at
        self._known[options] = found
        self._failures.pop(options, None)
        return found

    def _age(self, at: int) -> int:
        """Return the seconds since a time; a time in the future is old, as the clock was set back."""
        age = self._clock() - at
        return age if age >= 0 else METADATA_SECONDS


def _checked(options: ProviderOptions, document: JsonObject) -> ProviderMetadata:
    """Return the description of a provider; raise forbidden (`provider`) naming the member at fault."""
    issuer = _text(document, "issuer")
    _check_issuer(options, issuer)
    advertised = document.get("id_token_signing_alg_values_supported")
    names = advertised if isinstance(advertised, list) else ["RS256"]
    algorithms = tuple(name for name in SIGNATURE_ALGORITHMS if name in names)
    if not algorithms:
        raise _bad("id_token_signing_alg_values_supported", "it has no signature with a public key")
    methods = document.get("token_endpoint_auth_methods_supported")
    is_basic = not isinstance(methods, list) or "client_secret_basic" in methods
    return ProviderMetadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint", issuer),
        token_endpoint=_endpoint(document, "token_endpoint", issuer),
        jwks_uri=_endpoint(document, "jwks_uri", issuer),
        userinfo_endpoint=_endpoint(document, "userinfo_endpoint", issuer, optional=True),
        introspection_endpoint=_endpoint(document, "introspection_endpoint", issuer, optional=True),
        revocation_endpoint=_endpoint(document, "revocation_endpoint", issuer, optional=True),
        end_session_endpoint=_endpoint(document, "end_session_endpoint", issuer, optional=True),
        algorithms=algorithms,
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        secret_in_body=not is_basic and "client_secret_post" in (methods or ()),
    )


def _check_issuer(options: ProviderOptions, issuer: str) -> None:
    """Compare the issuer byte for byte with the configured one, else with the address of the description
    (OpenID Connect Discovery 1.0, 4.3)."""
    own_address = issuer.removesuffix("/") + WELL_KNOWN
    is_right = issuer == options.issuer if options.issuer else own_address == options.discovery_url
    if not is_right or len(issuer) > MAX_ISSUER_CHARACTERS:
        wanted = options.issuer or options.discovery_url.removesuffix(WELL_KNOWN)
        raise _bad("issuer", f"it is {issuer[:MAX_ISSUER_CHARACTERS]!r}, expected {wanted!r}")


def _endpoint(document: JsonObject, name: str, issuer: str, *, optional: bool = False) -> str:
    if optional and document.get(name) in (None, ""):
        return ""
    url = _text(document, name)
    try:
        parts = split_url(url)
        _ = parts.port
    except ValueError as error:
        raise _bad(name, str(error)) from error
    if (
        parts.scheme != issuer.partition(":")[0]
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
    ):
        raise _bad(name, "its scheme is not that of the issuer")
    if parts.username is not None or parts.fragment or len(url) > MAX_ENDPOINT_CHARACTERS:
        raise _bad(name, "it is not an address")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise _bad(name, "it is not an address")
    return url


def _text(document: JsonObject, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise _bad(name, "it is not a text")
    return value


def _keys(document: JsonObject) -> Sequence[JsonObject]:
    keys: Any = document.get("keys")
    if not isinstance(keys, list):
        raise _bad("keys", "it is not a list")
    return [key for key in keys[:MAX_KEYS] if isinstance(key, dict)]


def _bad(name: str, reason: str) -> GatewayError:
    return refuse(RefusalCode.PROVIDER, f"the provider's {name} cannot be used: {reason}")
