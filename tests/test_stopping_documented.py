"""The section STOPPING of gatewayd(8) has the figures of the code."""

from gatewayd.chat.answering import GATEWAY_STOPPED
from gatewayd.http import draining
from tests.test_manpages import ROOT


def section() -> str:
    page = (ROOT / "man" / "gatewayd.8").read_text()
    return " ".join(page.partition(".Sh STOPPING\n")[2].partition("\n.Sh ")[0].split())


def test_figures_of_a_stop() -> None:
    text = section()
    assert f"closed {draining.QUIET_SECONDS:g} s after its last answer" in text
    assert f"not earlier than {draining.TRANSIT_SECONDS:g} s after the signal" in text
    assert f"closed {draining.LATE_HEAD_SECONDS:g} s after the signal" in text
    assert f"stops in about {draining.TRANSIT_SECONDS:g} s" in text
    assert GATEWAY_STOPPED in text
