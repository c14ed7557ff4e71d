"""Tests for gatewayd.settings.page."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from gatewayd.settings import types
from gatewayd.settings.checks import PROBLEMS
from gatewayd.settings.settings_model import Settings

HOSTS = TypeAdapter(types.EmbedHosts)


def test_the_page_is_strict_by_default() -> None:
    settings = Settings()
    assert settings.enable_execute_events is False
    assert settings.embed_hosts == ()
    assert settings.page_module is None


def test_hosts_of_embeds() -> None:
    given = "Video.Example.org, *.example.com:8443"
    assert HOSTS.validate_python(given) == ("video.example.org", "*.example.com:8443")


@pytest.mark.parametrize(
    "host", ["https://a.example", "a b", "a;script-src *", "*", "*.", "a.example/x", "'self'", "a\n"]
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValidationError):
        HOSTS.validate_python((host,))


def test_the_module_of_the_page_must_be_there(tmp_path: Path) -> None:
    settings = Settings().model_copy(update={"page_module": tmp_path / "absent.js"})
    (check,) = [check for check in PROBLEMS if check.reads == ("page_module",)]
    assert list(check.run(settings)) == [
        ("page_module", f"cannot use page_module = '{tmp_path}/absent.js': there is no such file")
    ]
    assert list(check.run(Settings())) == []
