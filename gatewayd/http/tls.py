"""TLS of the public interface: one certificate with its key, loaded again when its files change."""

import logging
import ssl
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, system_reason

log = logging.getLogger(__name__)

PROTOCOLS: Final = ("http/1.1",)
"""Protocols that clients may choose (RFC 7301, section 3.1)."""

_FileVersions = tuple[tuple[int, int, int], ...]


class TlsCertificate:
    """The certificate of a server, for all its listeners.

    `context` stays the same; a new certificate is used by the handshakes that begin after it was loaded.
    Raises not_configured, naming the setting, for files that cannot be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._versions = self._read_versions()
        self.context = self._current = self._load()
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Load the files again; if they cannot be used, raise not_configured and keep the old ones."""
        versions = self._read_versions()
        self._current = self._load()
        self._versions = versions

    async def look(self) -> None:
        """Load the files again if they changed; log why they cannot be used, and keep the old ones."""
        try:
            if self._read_versions() == self._versions:
                return
            self.reload()
        except GatewayError as error:
            # The renewal may have written one of the two files only.
            log.warning("the old certificate stays: %s", error.full_message)
            return
        log.info("new certificate in use", extra={"file": str(self._certificate)})

    def _choose(self, channel: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        """Give a handshake the newest certificate; OpenSSL calls it for clients that name no server too."""
        channel.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(PROTOCOLS)
        try:
            context.load_cert_chain(self._certificate, self._key, _refuse_password)
        except ssl.SSLError as error:
            reason = "one of the files has no PEM block of its kind"
            if error.reason == "KEY_VALUES_MISMATCH":
                reason = "the key does not belong to the certificate"
            raise _unusable(
                "tls_certificate", f"{self._certificate} with tls_key {self._key}: {reason}"
            ) from error
        except _PasswordError as error:
            raise _unusable("tls_key", f"{self._key}: it is encrypted") from error
        except OSError as error:
            raise _unusable("tls_certificate", f"{self._certificate}: {system_reason(error)}") from error
        return context

    def _read_versions(self) -> _FileVersions:
        found = []
        for name, path in (("tls_certificate", self._certificate), ("tls_key", self._key)):
            try:
                status = path.stat()
            except OSError as error:
                raise _unusable(name, f"{path}: {system_reason(error)}") from error
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)


class _PasswordError(Exception):
    """The key needs a password; without this OpenSSL would ask for it on the terminal."""


def _refuse_password() -> str:
    raise _PasswordError


def _unusable(name: str, reason: str) -> GatewayError:
    return GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot use {name} {reason}", param=name)
