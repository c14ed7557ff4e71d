import ssl

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.errors import TransportError, failure_reason


def verification(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL] for 10.0.0.1")
    error.verify_message = message
    return error


def of_openssl(words: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL] for 10.0.0.1")
    error.reason = words
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "end of stream"),
        (ConnectionResetError(104, "10.0.0.1"), "connection reset by peer"),
        (ConnectionResetError("10.0.0.1"), "connection closed"),
        (OSError("10.0.0.1"), "OSError"),
        (ValueError("10.0.0.1"), "ValueError"),
        (verification("certificate has expired"), "certificate has expired"),
        (of_openssl("WRONG_VERSION_NUMBER"), "wrong version number"),
        (ssl.SSLError(1, "10.0.0.1"), "SSLError"),
    ],
)
def test_reason(error, words):
    assert failure_reason(error) == words


def test_the_failure_carries_its_kind_and_sentence():
    error = TransportError(ErrorKind.TIMEOUT, "it was silent")
    assert (error.kind, error.sentence, str(error)) == (ErrorKind.TIMEOUT, "it was silent", "it was silent")
