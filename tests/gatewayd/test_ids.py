"""Tests for gatewayd.ids."""

import hashlib
import uuid

from gatewayd import ids


def test_ids_are_version_four() -> None:
    first, second = ids.new_id(), ids.new_id()
    assert uuid.UUID(first).version == 4
    assert first != second


def test_secrets_have_the_asked_size_in_bytes() -> None:
    assert len(ids.new_secret(32)) == 64
    assert ids.new_secret() != ids.new_secret()


def test_digest_is_sha256_and_takes_any_text() -> None:
    assert ids.digest("sk-1") == hashlib.sha256(b"sk-1").hexdigest()
    assert ids.digest("\ud800") != ids.digest("\ud801")


def test_now_counts_whole_seconds() -> None:
    assert isinstance(ids.now(), int)
