"""The findings of the doctor: a code, a sentence, and the command that repairs it.

The codes are an interface: scripts compare them. gatewayd-operations(7), DOCTOR, has the table.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.errors import GatewayError


class FindingLevel(StrEnum):
    """How bad a finding is; the exit status of the command is 1 or 2."""

    WARNING = "warning"
    ERROR = "error"


W, E = FindingLevel.WARNING, FindingLevel.ERROR

CODES: Final[dict[str, FindingLevel]] = {
    "daemon-stopped": W,
    "config-invalid": E,
    "config-warning": W,
    "state-missing": E,
    "state-open": W,
    "state-owner": E,
    "file-open": W,
    "secret-open": E,
    "secret-short": W,
    "disk-low": W,
    "disk-full": E,
    "clock-behind": E,
    "descriptors-low": W,
    "unit-open": W,
    "database-unreachable": E,
    "database-damaged": E,
    "schema-older": E,
    "schema-newer": E,
    "schema-broken": E,
    "index-behind": W,
    "files-orphaned": W,
    "uploads-abandoned": W,
    "vectors-unused": W,
    "file-lost": E,
    "limit-small": W,
    "provider-none": W,
    "provider-unreachable": W,
    "plugin-broken": W,
    "audit-broken": E,
    "check-failed": E,
}
"""Every code, in the order of the report."""

MAX_FINDINGS_OF_ONE_CODE: Final = 10


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """A finding: a code of `CODES`, a sentence, and the command that repairs it."""

    code: str
    sentence: str
    command: str

    @property
    def level(self) -> FindingLevel:
        """How bad it is."""
        return CODES[self.code]


def collected(*checks: Callable[[], Iterable[DoctorFinding]]) -> Iterator[DoctorFinding]:
    """Run checks one after the other and yield their findings; a check that cannot be made is one itself."""
    for check in checks:
        try:
            yield from list(check())
        except OSError as error:
            yield failed(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        except GatewayError as error:
            yield failed(error.full_message)


def failed(reason: str) -> DoctorFinding:
    """Return the finding of a check that could not be made."""
    return DoctorFinding("check-failed", f"cannot make a check: {reason}", "gatewayctl health")


def ordered(findings: Iterable[DoctorFinding]) -> Sequence[DoctorFinding]:
    """Return findings in the order of their codes, at most ten of a code."""
    places = {code: place for place, code in enumerate(CODES)}
    kept: list[DoctorFinding] = []
    for each in sorted(findings, key=lambda finding: places[finding.code]):
        alike = sum(other.code == each.code for other in kept)
        if alike < MAX_FINDINGS_OF_ONE_CODE:
            kept.append(each)
    return kept
