"""Headers with which a proxy in front tells whom it has authenticated.

A header counts only from a peer of the configured networks: the address of the connection, never one that
X-Forwarded-For names. Programs behind a proxy may read `_` as `-`, so a client could smuggle a variant of the
name past the proxy: a variant, and a header that occurs twice, are refused.
"""

import email.errors
import email.header
import logging
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from aiohttp import web

from gatewayd import ids
from gatewayd.accounts.identity.records import ExternalIdentity, GroupRules, IdentityRules, RoleRules
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.accounts.texts import email_key, object_or_empty
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.connections.admission import is_within
from gatewayd.text import is_storable

log = logging.getLogger(__name__)

PROVIDER: Final = "header"
"""Provider and issuer of the identities of trusted headers."""
LOG_SECONDS: Final = 60


class HeaderEncoding(StrEnum):
    """Encoding of names in headers: percent-encoded UTF-8, encoded words (RFC 2047), or UTF-8 as it is."""

    PERCENT = "percent"
    RFC2047 = "rfc2047"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The names of the headers in lower case; "" for one that is not used. Without `email` none is read."""

    email: str = ""
    name: str = ""
    groups: str = ""
    role: str = ""

    @property
    def given(self) -> Sequence[str]:
        """The names that are used."""
        return [name for name in (self.email, self.name, self.groups, self.role) if name]


class TrustedHeaders:
    """Reads the identity that a proxy asserts."""

    def __init__(
        self,
        names: HeaderNames,
        networks: tuple[IPv4Network | IPv6Network, ...] = (),
        encoding: HeaderEncoding = HeaderEncoding.PERCENT,
        clock: ids.Clock | None = None,
    ) -> None:
        self._names = names
        self._networks = networks
        self._encoding = encoding
        self._folded = {_fold(name): name for name in names.given}
        self._clock = clock or ids.steady_clock()
        self._ignored = 0
        self._logged_at: int | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether a header is configured."""
        return bool(self._names.email)

    def find_forged(self, request: web.Request) -> frozenset[str]:
        """Return the names, in lower case, of headers that the peer of a request may not send.

        They are counted in the log.
        """
        if is_within(request.remote or "", self._networks):
            return frozenset()
        found = frozenset(name.lower() for name in request.headers if _fold(name) in self._folded)
        if found:
            self._note_ignored(request)
        return found

    def find_address(self, request: web.Request) -> str:
        """Return the e-mail address that a proxy asserts, normalised for a comparison, "" for none.

        Raises invalid_request for a header that occurs twice, for a variant of its name, and for a value that
        is no address.
        """
        value = self._read(request).get(self._names.email, "")
        if not value:
            return ""
        address = email_key(value)
        if not address:
            raise invalid("cannot accept the header: its value is no e-mail address", param=self._names.email)
        return address

    def find_identity(self, request: web.Request) -> ExternalIdentity | None:
        """Return the identity that a proxy asserts, None without its header; raise as `find_address`."""
        address = self.find_address(request)
        if not address:
            return None
        values = self._read(request)
        groups = self._decoded(values, self._names.groups).split(",")
        role = values.get(self._names.role, "").lower()
        return ExternalIdentity(
            provider=PROVIDER,
            issuer=PROVIDER,
            subject=address,
            email=address,
            email_verified=True,
            name=self._decoded(values, self._names.name),
            roles=(role,) if role else None,
            # An empty header says nothing about the groups.
            groups=tuple(name.strip() for name in groups if name.strip()) or None,
        )

    def rules(self, identity: ExternalIdentity) -> IdentityRules:
        """Return the rules for an identity.

        The address is the subject, so it names any account, also that of an administrator. Roles and groups
        are managed while their headers have a value.
        """
        return IdentityRules(
            sign_up=True,
            merge_by_email=True,
            joins_admins=True,
            roles=RoleRules(is_managed=identity.roles is not None, may_lower_admins=True),
            groups=GroupRules(is_managed=identity.groups is not None),
        )

    def check(self, request: web.Request, actor: Actor) -> None:
        """Raise unauthenticated if a proxy asserts another person than the session of a request has."""
        if actor.kind is not CredentialKind.SESSION:
            return
        address = self.find_address(request)
        if not address or address == actor.user.email:
            return
        linked = object_or_empty(object_or_empty(actor.user.oauth).get(PROVIDER)).get("sub")
        if address != linked:
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot accept the session: the proxy names another person; sign in again",
            )

    def _read(self, request: web.Request) -> dict[str, str]:
        """Return the values by name; nothing from a peer outside the networks."""
        found = [(name, value) for name, value in request.headers.items() if _fold(name) in self._folded]
        if not found or not is_within(request.remote or "", self._networks):
            return {}
        values: dict[str, str] = {}
        for sent, value in found:
            name = self._folded[_fold(sent)]
            if name in values or sent.lower() != name:
                raise invalid(
                    f"cannot accept the header {name}: it occurs twice, or with another spelling", param=name
                )
            if not is_storable(value):
                raise invalid(f"cannot accept the header {name}: it is not UTF-8", param=name)
            values[name] = value.strip()
        return values

    def _decoded(self, values: dict[str, str], name: str) -> str:
        value = values.get(name, "")
        try:
            text = _decode(value, self._encoding)
        except (LookupError, UnicodeError, email.errors.HeaderParseError, ValueError):
            text = "\x00"
        if not is_storable(text):
            raise invalid(f"cannot accept the header {name}: it is not {self._encoding.value}", param=name)
        return text

    def _note_ignored(self, request: web.Request) -> None:
        self._ignored += 1
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < LOG_SECONDS:
            return
        self._logged_at = now
        log.warning(
            "trusted headers ignored: they come from outside trusted_header_networks",
            extra={"address": request.remote or "a unix socket", "count": self._ignored},
        )
        self._ignored = 0


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")


def _decode(value: str, encoding: HeaderEncoding) -> str:
    if encoding is HeaderEncoding.PERCENT:
        return urllib.parse.unquote(value, errors="strict")
    if encoding is HeaderEncoding.RFC2047:
        return str(email.header.make_header(email.header.decode_header(value)))
    return value
