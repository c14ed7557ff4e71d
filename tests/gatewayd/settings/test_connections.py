from collections.abc import Callable

import pytest

from gatewayd.http.connections.minimum_rate import BODY_RATE, SEND_RATE
from gatewayd.settings import Settings


def test_peers_have_a_minimum_rate_unless_it_is_changed(load_text: Callable[..., Settings]) -> None:
    settings = load_text("")
    assert (settings.client_body_min_rate, settings.client_body_timeout) == (
        BODY_RATE.bytes_per_second,
        BODY_RATE.seconds,
    )
    assert (settings.send_min_rate, settings.send_timeout) == (SEND_RATE.bytes_per_second, SEND_RATE.seconds)
    assert load_text('send_min_rate = "2KiB"').send_min_rate == 2048


def test_an_address_may_have_more_than_an_account(load_text: Callable[..., Settings]) -> None:
    settings = load_text("")
    for name in ("connection", "upload", "download", "stream"):
        assert 0 < getattr(settings, f"account_{name}_limit") < getattr(settings, f"address_{name}_limit")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_body_timeout", 0),
        ("send_timeout", 3601),
        ("client_body_min_rate", -1),
        ("account_stream_limit", -1),
        ("address_upload_limit", 1_000_001),
    ],
)
def test_limits_have_bounds(problems: Callable[..., list[str]], name: str, value: int) -> None:
    assert name in problems(f"{name} = {value}")[0]
