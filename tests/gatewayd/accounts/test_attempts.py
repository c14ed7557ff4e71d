"""Tests for gatewayd.accounts.attempts."""

import pytest

from gatewayd.accounts import attempts as module
from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit, network_of, wide_network_of


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRACKED", 5)
    tries = AttemptCounter(AttemptLimit(1, 60), lambda: 0)
    for number in range(50):
        tries.add(str(number))
    assert len(tries._times) == 5
    assert tries.wait("49") == 60
    assert tries.wait("0") == 0
    tries.uncount_latest("49")
    tries.uncount_latest("0")
    assert len(tries._times) == 4


def test_the_window_slides() -> None:
    now = [0]
    tries = AttemptCounter(AttemptLimit(2, 60), lambda: now[0])
    assert tries.wait("a") == 0
    tries.add("a")
    now[0] = 30
    tries.add("a")
    assert tries.wait("a") == 30
    now[0] = 60
    assert tries.wait("a") == 0
    tries.add("a")
    assert tries.wait("a") == 30
    tries.forget("a")
    tries.forget("a")
    assert tries.wait("a") == 0


@pytest.mark.parametrize(
    ("peer", "network", "wide"),
    [
        ("192.0.2.1", "192.0.2.1", None),
        ("::ffff:192.0.2.1", "192.0.2.1", None),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
        ("", "", None),
        ("x" * 1000, "x" * 64, None),
    ],
)
def test_what_counts_as_one_client(peer: str, network: str, wide: str | None) -> None:
    assert (network_of(peer), wide_network_of(peer)) == (network, wide)
