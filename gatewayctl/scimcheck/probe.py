"""Requests of a check over HTTP, and explanations for missing answers."""

import http.client
import json
import socket
import ssl
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlencode

from gatewayctl import __version__
from gatewayctl.prompts import usage
from gatewayctl.scimcheck.address import Base
from gatewayctl.scimcheck.records import Ask, Fault, ScimAnswer, Unanswered

TIMEOUT_SECONDS: Final = 15.0
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
SCIM_JSON: Final = "application/scim+json"


class Probe(Protocol):
    """Sends requests."""

    def send(self, ask: Ask) -> ScimAnswer:
        """Return the answer; raise Unanswered when there is none."""
        ...


class HttpProbe:
    """Sends each request on a connection of its own, and follows no redirect."""

    def __init__(self, base: Base, token: str, context: ssl.SSLContext | None) -> None:
        self._base = base
        self._token = token
        self._context = context

    def send(self, ask: Ask) -> ScimAnswer:
        """Return the answer; raise Unanswered when there is none."""
        target = f"{self._base.path}{ask.path}"
        if ask.query:
            target += f"?{urlencode(ask.query)}"
        body = json.dumps(ask.body).encode() if ask.body is not None else None
        with closing(self._connection()) as connection:
            try:
                connection.request(ask.method, target, body, self._headers(ask))
                reply = connection.getresponse()
                content = reply.read(MAX_ANSWER_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise Unanswered(explain(error, self._base)) from error
        headers = {name.lower(): value for name, value in reply.getheaders()}
        return ScimAnswer(reply.status, headers, content)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._base.host, self._base.port
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._context)

    def _headers(self, ask: Ask) -> dict[str, str]:
        headers = {"Accept": SCIM_JSON, "Connection": "close", "User-Agent": f"gatewayctl/{__version__}"}
        if ask.body is not None:
            headers["Content-Type"] = SCIM_JSON
        if ask.token is not None:
            headers["Authorization"] = f"Bearer {ask.token or self._token}"
        return headers


def make_context(base: Base, ca: Path | None, *, is_insecure: bool) -> ssl.SSLContext | None:
    """Return the TLS context; None for plain HTTP."""
    if not base.is_secure:
        return None
    try:
        context = ssl.create_default_context(cafile=str(ca) if ca is not None else None)
    except (OSError, ssl.SSLError) as error:
        reason = (error.strerror or str(error)).lower()
        raise usage(f"cannot read --ca {ca}: {reason}", param="--ca") from error
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def explain(error: OSError | http.client.HTTPException, base: Base) -> Fault:
    """Return the fault for a missing answer, with advice."""
    where = f"{base.host}:{base.port}"
    match error:
        case ssl.SSLCertVerificationError():
            return Fault(
                f"the certificate of {where} is not trusted: {error.verify_message}",
                "install the whole chain at the proxy, or name the issuer with --ca",
            )
        case ssl.SSLError():
            return Fault(
                f"no TLS with {where}: {error.reason or error}",
                "does it speak plain HTTP? then the address begins with http://",
            )
        case socket.gaierror():
            return Fault(f"there is no address for {base.host}", "check the name, and DNS")
        case ConnectionRefusedError():
            return Fault(
                f"nobody listens on {where}",
                "start gatewayd or the proxy; host and port in gatewayd.toml(5) say where it listens",
            )
        case TimeoutError():
            return Fault(f"no answer from {where} in time", "look for a firewall, or a proxy that waits")
        case http.client.HTTPException() | ConnectionResetError() | BrokenPipeError():
            return Fault(
                f"{where} closed the connection or does not speak HTTP",
                "does it speak TLS? then the address begins with https://",
            )
        case _:
            return Fault(f"cannot reach {where}: {(error.strerror or str(error)).lower()}")
