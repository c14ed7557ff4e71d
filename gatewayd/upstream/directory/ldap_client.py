"""LDAP client: one connection for each sign-in, in a worker thread, with a deadline for each step.

The only importer of `ldap` (python-ldap), which is the extra `ldap`; the assembly loads this module by name.
"""

import asyncio
import logging
import socket
import ssl
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import ldap
import ldap.dn
import ldap.filter

from gatewayd import ids
from gatewayd.accounts.directory.records import DirectoryEntry
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.text import is_storable

log = logging.getLogger(__name__)

STEP_SECONDS: Final = 5.0
"""Maximum time of each step: to connect, to bind, to search."""
TOTAL_SECONDS: Final = 10.0
"""Maximum time of a check."""
FAILURE_SECONDS: Final = 0.5
"""Minimum time of a refusal, so that it does not tell whether the name exists."""
MAX_THREADS: Final = 4
MAX_WAITING: Final = 32
MAX_ENTRIES: Final = 2
RETRY_SECONDS: Final = 5
ANY_CIPHERS: Final = frozenset({"", "ALL"})
"""Values of `ciphers` that leave the choice to the TLS library; "ALL" is the default of Open WebUI."""

Attributes = Mapping[str, Sequence[bytes]]


class LdapSecurity(StrEnum):
    """How a connection is encrypted."""

    STARTTLS = "starttls"
    LDAPS = "ldaps"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LdapOptions:
    """The directory and how to search it.

    `security` says whether the connection is encrypted: from its start (LDAPS), or by StartTLS before any
    bind. Without `app_dn` the search is anonymous. `search_filter` is a filter (RFC 4515) that entries must
    match as well, "" for none.
    """

    host: str
    port: int
    search_base: str
    security: LdapSecurity = LdapSecurity.STARTTLS
    checks_certificate: bool = True
    ca_file: Path | None = None
    ciphers: str = ""
    app_dn: str = ""
    app_password: str = field(default="", repr=False)
    search_filter: str = ""
    name_attribute: str = "uid"
    mail_attribute: str = "mail"
    group_attribute: str = "memberOf"

    @property
    def address(self) -> str:
        """The address of the server as an LDAP URL."""
        scheme = "ldaps" if self.security is LdapSecurity.LDAPS else "ldap"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"


class LdapDirectory:
    """Implements `accounts.directory.interfaces.Directory`."""

    def __init__(self, options: LdapOptions, failure_seconds: float = FAILURE_SECONDS) -> None:
        self._options = options
        self._failure_seconds = failure_seconds
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="ldap")
        self._waiting = 0

    async def authenticate(self, name: str, password: str) -> DirectoryEntry | None:
        """Return the entry of a person, None for an unknown or ambiguous name and for a wrong password."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        # An empty password would be an anonymous bind, which succeeds (RFC 4513, 5.1.2).
        is_usable = name and password and is_storable(name) and is_storable(password)
        entry = await self._run(name, password) if is_usable else None
        if entry is None:
            await asyncio.sleep(max(0.0, began + self._failure_seconds - loop.time()))
        return entry

    def close(self) -> None:
        """Let the threads end; a step that waits for the directory is not awaited."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, name: str, password: str) -> DirectoryEntry | None:
        if self._waiting >= MAX_WAITING:
            raise _unavailable("too many sign-ins wait for the directory")
        self._waiting += 1
        attempt = LdapAttempt(self._options)
        job = asyncio.get_running_loop().run_in_executor(self._pool, attempt.check, name, password)
        job.add_done_callback(self._on_done)
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await asyncio.shield(job)
        except TimeoutError as error:
            raise _unavailable("it did not answer in time") from error
        finally:
            # A thread cannot be cancelled: without its connection it ends at once.
            attempt.cut()

    def _on_done(self, job: asyncio.Future[DirectoryEntry | None]) -> None:
        self._waiting -= 1
        if not job.cancelled():
            # Marks the error as seen when nobody waits any more.
            job.exception()


class LdapAttempt:
    """One check of a name and a password, over a connection of its own."""

    def __init__(self, options: LdapOptions) -> None:
        self._options = options
        self._socket: socket.socket | None = None
        self._is_cut = False

    def check(self, name: str, password: str) -> DirectoryEntry | None:
        """Return the entry of a person, as `Directory.authenticate` does; blocks."""
        try:
            with ExitStack() as stack:
                connection = self._connect(stack)
                self._secure(connection)
                return None if self._is_cut else self._check_with(connection, name, password)
        except OSError as error:
            raise _unavailable("it cannot be reached") from error
        except ldap.LDAPError as error:
            raise _unavailable(_reason(error)) from error

    def cut(self) -> None:
        """End the connection, so that a step which waits for the directory fails; from any thread.

        The handshake after StartTLS has no time limit in the library.
        """
        self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connect(self, stack: ExitStack) -> Any:
        """Return a connection to which nothing was sent yet; `stack` closes it."""
        options = self._options
        if options.security is LdapSecurity.LDAPS:
            probe_tls(options.host, options.port)
            connection = ldap.initialize(options.address)
        else:
            address = (options.host, options.port)
            opened = stack.enter_context(socket.create_connection(address, STEP_SECONDS))
            # The library waits by itself, and closes the descriptor that it gets.
            opened.settimeout(None)
            self._socket = opened
            connection = ldap.initialize(options.address, fileno=opened.dup().detach())
        stack.callback(connection.unbind_s)
        connection.set_option(ldap.OPT_PROTOCOL_VERSION, ldap.VERSION3)
        connection.set_option(ldap.OPT_REFERRALS, ldap.OPT_OFF)
        connection.set_option(ldap.OPT_DEREF, ldap.DEREF_NEVER)
        connection.set_option(ldap.OPT_NETWORK_TIMEOUT, STEP_SECONDS)
        connection.set_option(ldap.OPT_TIMEOUT, STEP_SECONDS)
        return connection

    def _secure(self, connection: Any) -> None:
        """Set the options of TLS, and send StartTLS; the handshake of LDAPS follows with the first bind."""
        options = self._options
        if options.security is LdapSecurity.NONE:
            return
        check = ldap.OPT_X_TLS_DEMAND if options.checks_certificate else ldap.OPT_X_TLS_NEVER
        connection.set_option(ldap.OPT_X_TLS_REQUIRE_CERT, check)
        connection.set_option(ldap.OPT_X_TLS_PROTOCOL_MIN, ldap.OPT_X_TLS_PROTOCOL_TLS1_2)
        if options.ca_file is not None:
            connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(options.ca_file))
        if options.ciphers not in ANY_CIPHERS:
            connection.set_option(ldap.OPT_X_TLS_CIPHER_SUITE, options.ciphers)
        connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
        if options.security is LdapSecurity.STARTTLS:
            connection.start_tls_s()

    def _check_with(self, connection: Any, name: str, password: str) -> DirectoryEntry | None:
        options = self._options
        connection.simple_bind_s(options.app_dn, options.app_password)
        found = self._search(connection, name)
        # An unknown name costs a bind as well. No entry has this name.
        dn = found[0] if found else f"cn={ids.new_secret(8)},{options.search_base}"
        try:
            connection.simple_bind_s(dn, password)
        except (
            ldap.INVALID_CREDENTIALS,
            ldap.NO_SUCH_OBJECT,
            ldap.INAPPROPRIATE_AUTH,
            ldap.UNWILLING_TO_PERFORM,
            ldap.INVALID_DN_SYNTAX,
        ):
            return None
        return None if found is None else _entry_of(found[0], found[1], options)

    def _search(self, connection: Any, name: str) -> tuple[str, Attributes] | None:
        """Return DN and attributes of the entry with a name, None unless there is exactly one."""
        options = self._options
        wanted = f"({options.name_attribute}={ldap.filter.escape_filter_chars(name)})"
        attributes = [
            options.mail_attribute,
            options.group_attribute,
            "displayName",
            "cn",
            "entryUUID",
            "objectGUID",
        ]
        try:
            rows = connection.search_ext_s(
                options.search_base,
                ldap.SCOPE_SUBTREE,
                f"(&{wanted}{options.search_filter})",
                attributes,
                timeout=STEP_SECONDS,
                sizelimit=MAX_ENTRIES,
            )
        except ldap.SIZELIMIT_EXCEEDED:
            rows = [("", {}), ("", {})]
        except ldap.NO_SUCH_OBJECT as error:
            raise _unavailable("the search base does not exist") from error
        # A reference to another server has no DN.
        entries = [(dn, values) for dn, values in rows if dn is not None]
        if len(entries) > 1:
            log.warning("sign-in refused: the directory has several entries of one name")
        return entries[0] if len(entries) == 1 else None


def check_filter(text: str) -> str:
    """Return a filter with parentheses around it, "" for an empty one."""
    text = text.strip()
    return text if not text or text.startswith("(") else f"({text})"


def probe_tls(host: str, port: int) -> None:
    """Raise OSError unless a server completes a handshake of TLS in time.

    The handshake of LDAPS has no time limit in the library. This one proves nothing else: the library checks
    the certificate of the connection that it makes then, and nothing is sent over this one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), STEP_SECONDS) as plain, context.wrap_socket(plain):
        pass


def _entry_of(dn: str, values: Attributes, options: LdapOptions) -> DirectoryEntry:
    by_name = {name.lower(): found for name, found in values.items()}

    def first(name: str) -> str:
        found = by_name.get(name.lower()) or [b""]
        return found[0].decode("utf-8", "replace")

    groups = [_first_name(each) for each in by_name.get(options.group_attribute.lower(), ())]
    return DirectoryEntry(
        id=_id_of(dn, by_name),
        dn=dn,
        name=first("displayName") or first("cn"),
        email=first(options.mail_attribute),
        groups=tuple(name for name in groups if name),
    )


def _id_of(dn: str, values: Attributes) -> str:
    """Return what stays the same when an entry is renamed or moved, the normalised DN if there is none."""
    guid = values.get("objectguid")
    if guid and len(guid[0]) == 16:
        return str(uuid.UUID(bytes_le=guid[0]))
    entry_uuid = values.get("entryuuid")
    if entry_uuid:
        return entry_uuid[0].decode("ascii", "replace").lower()
    return str(ldap.dn.dn2str(ldap.dn.str2dn(dn))).casefold()


def _first_name(value: bytes) -> str:
    """Return the value of the first relative name of a DN, such as the CN of a group; other texts as they
    are."""
    text = value.decode("utf-8", "replace")
    try:
        parts = ldap.dn.str2dn(text)
    except ldap.DECODING_ERROR:
        return text
    return str(parts[0][0][1]) if parts else ""


def _reason(error: ldap.LDAPError) -> str:
    """Return why the directory could not be asked, without texts of the server: they may repeat a name."""
    kind = {
        ldap.SERVER_DOWN: "it cannot be reached, or its certificate is not valid",
        ldap.TIMEOUT: "it did not answer in time",
        ldap.CONNECT_ERROR: "TLS could not be negotiated",
        ldap.PROTOCOL_ERROR: "it does not know what was asked, such as StartTLS",
        ldap.CONFIDENTIALITY_REQUIRED: "it demands TLS",
        ldap.STRONG_AUTH_REQUIRED: "it demands TLS",
        ldap.INVALID_CREDENTIALS: "it refuses ldap_app_dn",
        ldap.FILTER_ERROR: "ldap_search_filters is no filter",
        ldap.INSUFFICIENT_ACCESS: "ldap_app_dn may not search",
        ldap.UNAVAILABLE: "it is not available",
        ldap.BUSY: "it is busy",
    }.get(type(error), "")
    return kind or f"it answered with {type(error).__name__}"


def _unavailable(reason: str) -> GatewayError:
    log.warning("the directory cannot be asked: %s", reason)
    return GatewayError(
        ErrorKind.UNAVAILABLE,
        "cannot sign in now: the directory cannot be asked",
        code="unreachable",
        retry_after=RETRY_SECONDS,
    )
