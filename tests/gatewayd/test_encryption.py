"""Tests for gatewayd.encryption."""

import pytest

from gatewayd.encryption import ENCRYPTED_PREFIX, DecryptionError, TextCipher


def test_a_text_comes_back_for_its_secret_and_use_only() -> None:
    cipher = TextCipher(b"secret", b"use")
    sealed = cipher.encrypt("Grüße \U0001f98a")
    assert sealed.startswith(ENCRYPTED_PREFIX)
    assert sealed.isascii()
    assert cipher.decrypt(sealed) == "Grüße \U0001f98a"
    for other in (TextCipher(b"other", b"use"), TextCipher(b"secret", b"other")):
        with pytest.raises(DecryptionError):
            other.decrypt(sealed)


@pytest.mark.parametrize("text", ["", ENCRYPTED_PREFIX, "x", "ü", "sealed:1:gAAAA" + "A" * 100])
def test_what_is_not_encrypted_is_refused(text: str) -> None:
    with pytest.raises(DecryptionError):
        TextCipher(b"secret", b"use").decrypt(text)
