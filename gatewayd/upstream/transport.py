"""The failure of a connection to a provider, as a kind with a sentence."""

import os
import ssl

from gatewayd.errors import Kind


class TransportError(Exception):
    """A provider was not reached, or broke off; `sentence` completes "cannot get an answer from ...: "."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence


def reason(error: BaseException | None) -> str:
    """Return a few words for what ended a connection, without addresses or URLs in them."""
    if error is None:
        return "end of stream"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return type(error).__name__
