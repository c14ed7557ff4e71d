"""Tests for gatewayd.ids."""

import hashlib
import os
import time
import uuid

import pytest

from gatewayd import ids


def test_ids_are_version_seven_of_the_present_time() -> None:
    before = time.time()
    made = uuid.UUID(ids.new_id())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert int(before * 1000) <= made.int >> 80 <= time.time() * 1000


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [ids.new_id() for _ in range(1000)]
    assert made == sorted(set(made))


@pytest.mark.process
def test_a_fork_shares_no_random_digits() -> None:
    made = {ids.new_id()[19:] for _ in range(3)}
    source, sink = os.pipe()
    if not (child := os.fork()):
        os.write(sink, "\n".join(ids.new_id()[19:] for _ in range(2 * ids.RANDOM_IDS)).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as reader:
        theirs = set(reader.read().split())
    os.waitpid(child, 0)
    assert len(theirs) == 2 * ids.RANDOM_IDS
    assert not theirs & (made | {ids.new_id()[19:] for _ in range(ids.RANDOM_IDS)})


def test_secrets_have_the_asked_size_in_bytes() -> None:
    assert len(ids.new_secret(32)) == 64
    assert ids.new_secret() != ids.new_secret()


def test_digest_is_sha256_and_takes_any_text() -> None:
    assert ids.digest("sk-1") == hashlib.sha256(b"sk-1").hexdigest()
    assert ids.digest("\ud800") != ids.digest("\ud801")


def test_now_counts_whole_seconds() -> None:
    assert isinstance(ids.now(), int)


def test_a_clock_for_durations_is_not_set_with_the_wall_clock() -> None:
    wall, boot = [1_700_000_000], [50.5]
    clock = ids.steady_clock(lambda: wall[0], lambda: boot[0])
    assert clock() == 1_700_000_000
    wall[0] -= 3600
    boot[0] += 2.25
    assert clock() == 1_700_000_002
    assert ids.now() - 1 <= ids.steady_clock()() <= ids.now() + 1


def test_a_clock_for_deletions_is_not_set_ahead_and_is_set_back() -> None:
    wall, boot = [1_700_000_000], [50.0]
    clock = ids.retention_clock(lambda: wall[0], lambda: boot[0])
    wall[0] += 3600
    assert clock() == 1_700_000_000
    wall[0] -= 7200
    assert clock() == 1_699_996_400


def test_the_time_since_the_start_of_the_machine_goes_on() -> None:
    before = ids.since_boot()
    assert before <= ids.since_boot()
