"""Client of identity providers: `accounts.identity.interfaces.ProviderTransport`."""

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson

from gatewayd import __version__
from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.providers import JsonObject, ProviderKind, ProviderMetadata, ProviderOptions
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.http.client import TransportError, open_client
from gatewayd.upstream.sources.config import UpstreamTimeouts
from gatewayd.urls import split_url

TIMEOUTS: Final = UpstreamTimeouts(connect=5.0, first_byte=10.0, idle=5.0, total=15.0)
MAX_ANSWER_BYTES: Final = 512 * 1024
MAX_ERROR_CHARACTERS: Final = 64
FORM: Final = "application/x-www-form-urlencoded"
AGENT: Final = {"User-Agent": f"gatewayd/{__version__}", "Accept": "application/json"}


class IdentityProviderClient:
    """Sends each request on a connection of its own, so that none is repeated, and follows no redirect."""

    async def get_json(self, options: ProviderOptions, url: str, *, bearer: str = "") -> JsonObject:
        """Return the JSON object at an address; a JSON list is `{"items": [...]}`."""
        headers = {**AGENT, "Authorization": f"Bearer {bearer}"} if bearer else AGENT
        return await _send(options, "GET", url, headers)

    async def post_form(
        self, options: ProviderOptions, metadata: ProviderMetadata, url: str, form: Mapping[str, str]
    ) -> JsonObject:
        """Send a form with the secret of the client (RFC 6749, 2.3.1) and return the JSON object."""
        return await _send(options, "POST", url, *_client_form(options, metadata, form))

    async def revoke(self, options: ProviderOptions, metadata: ProviderMetadata, token: str) -> None:
        """Revoke a refresh token (RFC 7009); the answer has no body."""
        form = {"token": token, "token_type_hint": "refresh_token"}
        status, _ = await _ask(
            options, "POST", metadata.revocation_endpoint, *_client_form(options, metadata, form)
        )
        if status != 200:
            raise refuse(RefusalCode.PROVIDER, f"the provider {options.name!r} answered {status}")

    async def check_endpoints(self, options: ProviderOptions, metadata: ProviderMetadata) -> None:
        """Raise forbidden (`provider`) if an endpoint on another host than the issuer's is at a private
        address and the issuer is not."""
        own = split_url(metadata.issuer).hostname or ""
        urls = (
            metadata.token_endpoint,
            metadata.jwks_uri,
            metadata.userinfo_endpoint,
            metadata.introspection_endpoint,
            metadata.revocation_endpoint,
        )
        hosts = {split_url(url).hostname or "" for url in urls if url} - {own}
        if not hosts or not await _is_public(own):
            return
        for host in sorted(hosts):
            if not await _is_public(host):
                raise refuse(
                    RefusalCode.PROVIDER,
                    f"the provider {options.name!r} names an endpoint at a private address: {host}",
                )


def _client_form(
    options: ProviderOptions, metadata: ProviderMetadata, form: Mapping[str, str]
) -> tuple[Mapping[str, str], bytes]:
    """Return the headers and the body of a form with the secret of the client."""
    media_type = "application/json; charset=utf-8" if metadata.takes_json else FORM
    headers = {**AGENT, "Content-Type": media_type}
    sent = dict(form)
    if options.client_secret and not metadata.secret_in_body:
        pair = f"{quote(options.client_id, safe='')}:{quote(options.client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        sent["client_id"] = options.client_id
        if options.client_secret:
            sent["client_secret"] = options.client_secret
    return headers, orjson.dumps(sent) if metadata.takes_json else urlencode(sent).encode()


async def _ask(
    options: ProviderOptions, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    """Return the status and the body of an answer; raise forbidden (`unreachable`) without a usable one."""
    client = open_client(TIMEOUTS, connections=1)
    try:
        response = await client.request(method, url, headers, body)
        content = await response.read(MAX_ANSWER_BYTES)
    except TransportError as error:
        if error.kind is ErrorKind.UPSTREAM_FAILED:
            raise refuse(
                RefusalCode.PROVIDER, f"the provider {options.name!r} answered badly: {error.sentence}"
            ) from error
        raise _unreachable(options, error.sentence) from error
    finally:
        await client.close()
    if response.status >= 500 or response.status == 429:
        raise _unreachable(options, f"it answered {response.status}")
    return response.status, content


async def _send(
    options: ProviderOptions, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
) -> JsonObject:
    status, content = await _ask(options, method, url, headers, body)
    found = _parse(content)
    if status != 200 or found is None:
        code = found.get("error") if found else None
        told = f" {code[:MAX_ERROR_CHARACTERS]!r}" if isinstance(code, str) else ""
        raise refuse(RefusalCode.PROVIDER, f"the provider {options.name!r} answered {status}{told}")
    is_failed = options.kind is ProviderKind.FEISHU and found.get("code") != 0
    if is_failed or ("error" in found and "access_token" not in found):
        # GitHub answers a refused code with 200, and Feishu each failure.
        raise refuse(RefusalCode.PROVIDER, f"the provider {options.name!r} answered an error")
    return found


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if isinstance(found, list):
        return {"items": found}
    return found if isinstance(found, dict) else None


async def _is_public(host: str) -> bool:
    """Tell whether every address of a host is a public one; True for a host that is not known."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_global for entry in found)


def _unreachable(options: ProviderOptions, sentence: str) -> GatewayError:
    return refuse(RefusalCode.UNREACHABLE, f"no answer from the provider {options.name!r}: {sentence}")
