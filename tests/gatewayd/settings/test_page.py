"""Tests for gatewayd.settings.page."""

import pytest
from pydantic import ValidationError

from gatewayd.settings.settings_model import Settings


def test_the_page_is_strict_by_default() -> None:
    settings = Settings()
    assert settings.enable_execute_events is False
    assert settings.embed_hosts == ()


def test_hosts_of_embeds() -> None:
    given = "Video.Example.org, *.example.com:8443"
    assert Settings(embed_hosts=given).embed_hosts == ("video.example.org", "*.example.com:8443")


@pytest.mark.parametrize(
    "host", ["https://a.example", "a b", "a;script-src *", "*", "*.", "a.example/x", "'self'", "a,\n"]
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValidationError):
        Settings(embed_hosts=(host,))
