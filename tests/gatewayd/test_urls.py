"""Hosts of half a million characters took minutes before; the limit of a test is two minutes."""

import pytest

from gatewayd.urls import split_url

MARKS = "\u0327\u0301" * 250_000


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.org:8/a?b#c", "example.org"),
        ("postgresql://u:" + "p" * 3000 + "@db/x", "db"),
        ("https://a/" + "x" * 100_000, "a"),
        ("sqlite:////var/lib/x.db", None),
        ("app://obsidian.md", "obsidian.md"),
        ("", None),
        ("https://" + "a" * 253, "a" * 253),
    ],
)
def test_parts(url: str, host: str | None) -> None:
    assert split_url(url).hostname == host


@pytest.mark.parametrize(
    "url",
    [
        "https://" + "a" * 254,
        "https://a" + MARKS,
        "https://a" + MARKS + "/",
        "https://u:" + MARKS + "@a/",
        "//" + MARKS + "?",
        " https://" + MARKS,
        "https:/\t/" + MARKS,
        "ht\ntps://" + MARKS,
        "https://" + "\u6f22" * 254,
    ],
)
def test_long_hosts_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"has more than|tabs"):
        split_url(url)
