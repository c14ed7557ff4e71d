"""Findings of the doctor on the wire, and in the output of `gatewayd --doctor`."""

from gatewayctl.wire.base import Reply


class DoctorFinding(Reply):
    """A finding: its code, `warning` or `error`, a sentence, and the command that repairs it."""

    code: str
    level: str
    sentence: str
    command: str


class DoctorReport(Reply):
    """All findings, in the order of the codes."""

    findings: list[DoctorFinding]
