"""Failures of connections to providers: the exception, and reasons for sentences."""

import os
import ssl

from gatewayd.errors import ErrorKind


class TransportError(Exception):
    """A connection failed or broke off; `sentence` completes "cannot get an answer from ...: "."""

    def __init__(self, kind: ErrorKind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence


def failure_reason(error: BaseException | None) -> str:
    """Return the reason for the end of a connection in a few words, without addresses and URLs."""
    if error is None:
        return "end of stream"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        # Errors that do not come from OpenSSL have no reason.
        words: str | None = getattr(error, "reason", None)
        return words.lower().replace("_", " ") if words else type(error).__name__
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return "connection closed" if isinstance(error, ConnectionError) else type(error).__name__
