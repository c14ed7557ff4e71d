"""Webhooks: rows as JSON in signed requests."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import orjson
from yarl import URL

from gatewayd import ids
from gatewayd.audit.records import AuditRow
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.http.client import TransportError, open_client
from gatewayd.upstream.sources.config import UpstreamTimeouts

TIMEOUTS: Final = UpstreamTimeouts(connect=5.0, first_byte=10.0, idle=10.0, total=20.0)
MAX_ANSWER_BYTES: Final = 64 * 1024


class WebhookReceiver:
    """Implements `audit.interfaces.AuditReceiver` by POST requests; any status of 2xx takes the rows.

    The user and password of an address go into the header Authorization (RFC 7617).
    """

    def __init__(self, url: str, secret: str, clock: ids.Clock = ids.now) -> None:
        address = URL(url)
        self._url = str(address.with_user(None))
        self._account = None
        if address.user is not None:
            pair = f"{address.user}:{address.password or ''}".encode()
            self._account = f"Basic {b64encode(pair).decode()}"
        self._secret = secret.encode()
        self._clock = clock

    async def send(self, rows: Sequence[AuditRow]) -> None:
        """Post rows; unavailable unless the receiver takes them."""
        body = orjson.dumps({"rows": [asdict(row) for row in rows]})
        client = open_client(TIMEOUTS, connections=1)
        try:
            response = await client.request("POST", self._url, self._headers(body), body)
            await response.read(MAX_ANSWER_BYTES)
        except TransportError as error:
            raise _refused(error.sentence) from error
        finally:
            await client.close()
        if not 200 <= response.status < 300:
            raise _refused(f"it answered {response.status}")

    async def close(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "gatewayd"}
        if self._account is not None:
            headers["Authorization"] = self._account
        if self._secret:
            at = str(self._clock())
            headers["X-Gatewayd-Timestamp"] = at
            headers["X-Gatewayd-Signature"] = f"sha256={sign(self._secret, at, body)}"
        return headers


def sign(secret: bytes, at: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of the time and the body, with a full stop between them, as hexadecimal text."""
    return hmac.new(secret, at.encode() + b"." + body, hashlib.sha256).hexdigest()


def _refused(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, f"cannot send to the webhook of the audit log: {reason}")
