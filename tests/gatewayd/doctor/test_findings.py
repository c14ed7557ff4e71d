"""Tests for gatewayd.doctor.findings."""

from collections.abc import Iterable

from gatewayd.doctor.findings import CODES, DoctorFinding, collected, ordered
from gatewayd.errors import ErrorKind, GatewayError


def test_findings_are_ordered_and_bounded() -> None:
    files = [DoctorFinding("file-open", "x", "y") for _ in range(30)]
    made = [DoctorFinding("audit-broken", "x", "y"), *files]
    assert [each.code for each in ordered(made)] == ["file-open"] * 10 + ["audit-broken"]
    assert {each.level.value for each in made} == {"warning", "error"}


def test_a_check_that_cannot_be_made_is_a_finding() -> None:
    def refused() -> Iterable[DoctorFinding]:
        raise PermissionError(13, "Permission denied", "/x")

    def broken() -> Iterable[DoctorFinding]:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read")

    found = list(collected(refused, broken, lambda: [DoctorFinding("file-lost", "x", "y")]))
    assert [each.code for each in found] == ["check-failed", "check-failed", "file-lost"]
    assert found[0].sentence == "cannot make a check: Permission denied: /x"
    assert all(each.code in CODES for each in found)
