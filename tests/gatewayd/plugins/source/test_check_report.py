"""Reports about sources."""

from gatewayd.plugins.source.check_report import SourceCheckReport


def test_what_has_no_error_loads() -> None:
    assert SourceCheckReport(id="a").loads
    assert not SourceCheckReport(id="a", error="no").loads
