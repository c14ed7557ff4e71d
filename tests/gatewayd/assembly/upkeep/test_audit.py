"""Tests for gatewayd.assembly.upkeep.audit: which receiver an address names."""

import pytest
from pydantic import SecretStr

from gatewayd.assembly.upkeep.audit import make_receiver
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import Settings
from gatewayd.upstream.audit.syslog import SyslogReceiver
from gatewayd.upstream.audit.webhook import WebhookReceiver


def settings(url: str) -> Settings:
    return Settings.model_construct(audit_forward_url=SecretStr(url), audit_forward_secret=SecretStr("hush"))


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("unix:///dev/log", "unix:///dev/log"),
        ("udp://logs.example", "udp://logs.example:514"),
        ("tcp://[::1]:99", "tcp://::1:99"),
        ("tls://logs.example/", "tls://logs.example:6514"),
    ],
)
def test_syslog(url: str, found: str) -> None:
    receiver = make_receiver(settings(url))
    assert isinstance(receiver, SyslogReceiver)
    assert str(receiver._address) == found


def test_webhooks_and_none() -> None:
    assert isinstance(make_receiver(settings("https://siem.example/hook?x=1")), WebhookReceiver)
    assert make_receiver(settings("")) is None


@pytest.mark.parametrize(
    "url",
    [
        "unix://",
        "unix://host/x",
        "udp:///x",
        "tcp://h/x",
        "ftp://h",
        "h",
        "tcp://h:x",
        "http:///x",
        "tcp://hush@h",
        "x://u:hush@h",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(GatewayError, match="cannot use audit_forward_url") as refused:
        make_receiver(settings(url))
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED
    assert "hush" not in refused.value.message
