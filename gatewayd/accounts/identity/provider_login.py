"""Sign-in at a provider by the authorization code flow (RFC 6749, 4.1; OpenID Connect Core 1.0, 3.1)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode

from gatewayd import ids
from gatewayd.accounts.identity import claims as claim_reader
from gatewayd.accounts.identity.attempts import SignInAttempt, SignInAttempts
from gatewayd.accounts.identity.discovery import ProviderDirectory
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.id_tokens import check_id_token, check_required
from gatewayd.accounts.identity.interfaces import ProviderTransport
from gatewayd.accounts.identity.providers import JsonObject, ProviderKind, ProviderMetadata, ProviderOptions
from gatewayd.accounts.identity.records import (
    MAX_SUBJECT_CHARACTERS,
    ExternalIdentity,
    ProviderTokens,
    RefusalCode,
)
from gatewayd.accounts.identity.signatures import read_header, verify
from gatewayd.accounts.identity.token_answers import read_tokens
from gatewayd.errors import GatewayError, not_found, shorten
from gatewayd.text import is_storable

log = logging.getLogger(__name__)

MAX_CODE_CHARACTERS: Final = 4096
OWN_PARAMS: Final = frozenset(
    {
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "response_mode",
        "response_type",
        "state",
    }
)
"""Parameters of the authorization request that the configuration cannot change."""


@dataclass(frozen=True, slots=True)
class CallbackParams:
    """The parameters with which a provider sends the browser back; "" for absent ones."""

    state: str = ""
    code: str = field(default="", repr=False)
    issuer: str = ""
    error: str = ""
    error_description: str = ""


@dataclass(frozen=True, slots=True)
class ProviderSession:
    """The result of a sign-in at a provider; `session_id` is its id there, "" when it is not known."""

    identity: ExternalIdentity
    tokens: ProviderTokens = field(repr=False)
    attempt: SignInAttempt = field(repr=False)
    session_id: str = ""


class ProviderLogin:
    """The configured providers, and sign-in at them. An unknown provider is not_found."""

    def __init__(
        self,
        transport: ProviderTransport,
        directory: ProviderDirectory,
        attempts: SignInAttempts,
        providers: Sequence[ProviderOptions] = (),
        clock: ids.Clock = ids.now,
    ) -> None:
        self._transport = transport
        self._directory = directory
        self._attempts = attempts
        self._clock = clock
        self._providers: Mapping[str, ProviderOptions] = {}
        self.configure(providers)

    @property
    def providers(self) -> Sequence[ProviderOptions]:
        """The providers in the order of the configuration."""
        return tuple(self._providers.values())

    def configure(self, providers: Sequence[ProviderOptions]) -> None:
        """Replace the providers, as after a reload."""
        self._providers = {options.name: options for options in providers}
        self._directory.keep(providers)

    def get(self, name: str) -> ProviderOptions:
        """Return the options of a provider."""
        options = self._providers.get(name)
        if options is None:
            raise not_found("provider", name)
        return options

    def surplus(self, cookies: Mapping[str, str]) -> Sequence[str]:
        """Return the cookies of attempts that must go before one more comes."""
        return self._attempts.surplus(cookies)

    async def begin(
        self, name: str, redirect_uri: str, *, return_path: str = "/", user_id: str = ""
    ) -> tuple[str, SignInAttempt, str]:
        """Return the address to send the browser to, the attempt and the value of its cookie."""
        options = self.get(name)
        metadata = await self._directory.metadata(options)
        redirect_uri = options.redirect_uri or redirect_uri
        attempt, cookie = self._attempts.begin(
            name, metadata.issuer, redirect_uri, return_path=return_path, user_id=user_id
        )
        params = {name: value for name, value in options.authorize_params if name not in OWN_PARAMS}
        params = {
            "scope": options.scopes,
            **params,
            "response_type": "code",
            "client_id": options.client_id,
            "redirect_uri": redirect_uri,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{joint}{urlencode(params)}", attempt, cookie

    async def complete(
        self, name: str, cookies: Mapping[str, str], params: CallbackParams
    ) -> ProviderSession:
        """Return who has signed in; raise forbidden with a `RefusalCode`.

        Nothing is sent to the provider before the state and the issuer of the answer are checked.
        """
        options = self.get(name)
        attempt = await self._attempts.take(cookies, name, params.state)
        metadata = await self._directory.metadata(options)
        _check_answer(params, attempt, metadata)
        answer = await self._redeem(options, metadata, params.code, attempt)
        tokens = read_tokens(answer, self._clock())
        if options.kind is ProviderKind.GITHUB:
            identity = await self._read_github(options, metadata, tokens.access_token)
            return ProviderSession(identity, tokens, attempt)
        if options.kind is ProviderKind.FEISHU:
            identity = await self._read_feishu(options, metadata, tokens.access_token)
            return ProviderSession(identity, tokens, attempt)
        claims = await self._verified(options, metadata, answer.get("id_token"))
        check_id_token(
            claims,
            issuer=metadata.issuer,
            client_id=options.client_id,
            nonce=attempt.nonce,
            now=self._clock(),
        )
        check_required(claims, options.required_claims)
        userinfo = await self.read_userinfo(options, metadata, claims, tokens.access_token)
        identity = claim_reader.read_identity(claims, userinfo, options, metadata.issuer)
        return ProviderSession(identity, tokens, attempt, _session_id(claims))

    async def refresh(self, name: str, refresh_token: str) -> ProviderTokens:
        """Return new tokens for a refresh token (RFC 6749, 6); raise forbidden, or not_found without the
        provider.

        The id token of the sign-in stays: that of a refresh was not checked.
        """
        options = self.get(name)
        metadata = await self._directory.metadata(options)
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        if options.refreshes_scopes:
            form["scope"] = options.scopes
        answer = await self._transport.post_form(options, metadata, metadata.token_endpoint, form)
        return replace(read_tokens(answer, self._clock()), id_token="")

    async def revoke(self, name: str, tokens: ProviderTokens) -> None:
        """Revoke the refresh token of a removed link at its provider; a failure is only logged."""
        options = self._providers.get(name)
        if options is None or options.kind is not ProviderKind.OIDC or not tokens.refresh_token:
            return
        try:
            metadata = await self._directory.metadata(options)
            if metadata.revocation_endpoint:
                await self._transport.revoke(options, metadata, tokens.refresh_token)
        except GatewayError as error:
            log.warning("refresh token not revoked: %s", error.message)

    async def read_userinfo(
        self, options: ProviderOptions, metadata: ProviderMetadata, claims: JsonObject, access_token: str
    ) -> JsonObject:
        """Return the claims of userinfo, empty if they are not needed; raise forbidden if they are of another
        person (OpenID Connect Core 1.0, 5.3.2)."""
        if not metadata.userinfo_endpoint or claim_reader.is_complete(claims, options):
            return {}
        found = await self._transport.get_json(options, metadata.userinfo_endpoint, bearer=access_token)
        if found.get("sub") != claims.get("sub"):
            raise refuse(RefusalCode.PROVIDER, "the answer of userinfo is about another person")
        return found

    async def _verified(
        self, options: ProviderOptions, metadata: ProviderMetadata, token: Any
    ) -> dict[str, Any]:
        if not isinstance(token, str):
            raise refuse(RefusalCode.PROVIDER, "the provider sent no id token")
        header = read_header(token, metadata.algorithms)
        return verify(token, header, await self._directory.keys(options, header.fits))

    async def _redeem(
        self, options: ProviderOptions, metadata: ProviderMetadata, code: str, attempt: SignInAttempt
    ) -> JsonObject:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        return await self._transport.post_form(options, metadata, metadata.token_endpoint, form)

    async def _read_github(
        self, options: ProviderOptions, metadata: ProviderMetadata, access_token: str
    ) -> ExternalIdentity:
        """Return the identity of a person at GitHub, with their primary address if it is verified."""
        person = dict(
            await self._transport.get_json(options, metadata.userinfo_endpoint, bearer=access_token)
        )
        found = await self._transport.get_json(
            options, f"{metadata.userinfo_endpoint}/emails", bearer=access_token
        )
        emails = [each for each in found.get("items", ()) if isinstance(each, dict)]
        primary = next((each for each in emails if each.get("primary") is True), {})
        person["email"] = primary.get("email")
        person["email_verified"] = primary.get("verified") is True
        person.setdefault("name", None)
        person["name"] = person["name"] or person.get("login")
        return claim_reader.read_identity(person, {}, options, metadata.issuer)

    async def _read_feishu(
        self, options: ProviderOptions, metadata: ProviderMetadata, access_token: str
    ) -> ExternalIdentity:
        """Return the identity of a person at Feishu, which does not say that it verified an address."""
        found = await self._transport.get_json(options, metadata.userinfo_endpoint, bearer=access_token)
        data = found.get("data")
        person = dict(data) if isinstance(data, dict) else {}
        person["email"] = person.get("enterprise_email") or person.get("email")
        person["email_verified"] = False
        return claim_reader.read_identity(person, {}, options, metadata.issuer)


def _check_answer(params: CallbackParams, attempt: SignInAttempt, metadata: ProviderMetadata) -> None:
    """Raise forbidden unless the answer is one of the provider that was asked (RFC 9207, 2.4)."""
    if metadata.issuer != attempt.issuer:
        raise refuse(RefusalCode.PROVIDER, "the issuer of the provider has changed")
    if params.issuer != metadata.issuer and (params.issuer or metadata.sends_issuer):
        raise refuse(RefusalCode.PROVIDER, "the answer is of another issuer")
    if params.error:
        told = f"{shorten(params.error)!r} {shorten(params.error_description)!r}"
        raise refuse(RefusalCode.PROVIDER, f"the provider answered {told}")
    if not 0 < len(params.code) <= MAX_CODE_CHARACTERS:
        raise refuse(RefusalCode.PROVIDER, "the provider sent no code")


def _session_id(claims: JsonObject) -> str:
    found = claims.get("sid")
    is_id = isinstance(found, str) and len(found) <= MAX_SUBJECT_CHARACTERS and is_storable(found)
    return str(found) if is_id else ""
