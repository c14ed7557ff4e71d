"""Reports about sources."""

from gatewayd.plugins.source.check_report import Report


def test_what_has_no_error_loads() -> None:
    assert Report(id="a").loads
    assert not Report(id="a", error="no").loads
