"""The section STOPPING of gatewayd(8) has the figures of the code."""

import re

from gatewayd.http.connections import drain as connections_drain
from gatewayd.pipeline.runs.executor import GATEWAY_STOPPED
from gatewayd.settings import Settings
from tests.test_manpages import ROOT
from tests.test_units import SERVICE, seconds


def section() -> str:
    page = (ROOT / "man" / "gatewayd.8").read_text()
    return " ".join(page.partition(".Sh STOPPING\n")[2].partition("\n.Sh ")[0].split())


def test_figures_of_a_stop() -> None:
    text = section()
    assert f"closed {connections_drain.QUIET_SECONDS:g} s after its last answer" in text
    assert f"not earlier than {connections_drain.TRANSIT_SECONDS:g} s after the signal" in text
    assert f"closed {connections_drain.LATE_HEAD_SECONDS:g} s after the signal" in text
    assert f"stops in about {connections_drain.TRANSIT_SECONDS:g} s" in text
    assert GATEWAY_STOPPED in text


def stop_margin() -> float:
    """Return the seconds by which the service manager must wait longer than `drain_timeout`."""
    found = re.search(r"TimeoutStopSec of the service unit must be longer .*? by (\d+) s", plain(section()))
    assert found is not None
    return float(found[1])


def plain(text: str) -> str:
    """Return text without the macros of mdoc(7)."""
    return " ".join(word for word in text.split() if not re.fullmatch(r"\.[A-Z][a-z]", word))


def test_the_unit_leaves_time_for_a_stop() -> None:
    waited = seconds(SERVICE["TimeoutStopSec"][0])
    assert waited >= Settings.model_fields["drain_timeout"].default + stop_margin()
    assert f"It is {waited:g} s" in section()
