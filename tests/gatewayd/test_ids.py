"""Tests for gatewayd.ids."""

import hashlib
import time
import uuid

from gatewayd import ids


def test_ids_are_version_seven_of_the_present_time() -> None:
    before = time.time()
    made = uuid.UUID(ids.new_id())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert int(before * 1000) <= made.int >> 80 <= time.time() * 1000


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [ids.new_id() for _ in range(1000)]
    assert made == sorted(set(made))


def test_secrets_have_the_asked_size_in_bytes() -> None:
    assert len(ids.new_secret(32)) == 64
    assert ids.new_secret() != ids.new_secret()


def test_digest_is_sha256_and_takes_any_text() -> None:
    assert ids.digest("sk-1") == hashlib.sha256(b"sk-1").hexdigest()
    assert ids.digest("\ud800") != ids.digest("\ud801")


def test_now_counts_whole_seconds() -> None:
    assert isinstance(ids.now(), int)
