"""Tests for gatewayd.accounts.devices."""

import pytest

from gatewayd.accounts.devices import LIFE_SECONDS, DeviceCookies

SECRET = "s" * 32


def test_a_device_cookie_is_good_for_its_account_and_a_year() -> None:
    now = [1000]
    devices = DeviceCookies(SECRET, lambda: now[0])
    one, two = devices.issue("ann@x"), devices.issue("ann@x")
    assert devices.find("ann@x", one) != devices.find("ann@x", two)
    assert devices.find("ann@x", one) == one.partition(".")[0]
    assert devices.find("bob@x", one) is None
    assert DeviceCookies("t" * 32, lambda: now[0]).find("ann@x", one) is None
    now[0] += LIFE_SECONDS
    assert devices.find("ann@x", one) is None


@pytest.mark.parametrize("cookie", ["", ".", "..", "a.b.c", "a.99999999999.", "\xe9", "x" * 5000])
def test_what_is_no_device_cookie(cookie: str) -> None:
    assert DeviceCookies(SECRET).find("ann@x", cookie) is None


def test_a_changed_device_cookie_is_none() -> None:
    devices = DeviceCookies(SECRET, lambda: 0)
    nonce, ends, signature = devices.issue("ann@x").split(".")
    assert devices.find("ann@x", f"{nonce}.{int(ends) + 1}.{signature}") is None
    assert devices.find("ann@x", f"{nonce}0.{ends}.{signature}") is None
