"""gatewayctl doctor, and the route behind it."""

import json
import subprocess
from pathlib import Path

import pytest

from gatewayctl.commands.upkeep import doctor as module
from gatewayd.doctor.findings import DoctorFinding
from tests.fakes.daemons.control_socket import Control, Ctl

OPEN = DoctorFinding("state-open", "others may enter it", "chmod 700 x")
LOST = DoctorFinding("file-lost", "bytes are gone", "gatewayctl file delete x")


@pytest.mark.parametrize(
    ("findings", "code", "words"),
    [([], 0, "nothing is wrong"), ([OPEN], 1, "chmod 700 x"), ([OPEN, LOST], 2, "file-lost")],
)
async def test_the_exit_status_is_that_of_the_worst(
    ctl: Ctl, control: Control, findings: list[DoctorFinding], code: int, words: str
) -> None:
    control.findings = findings
    done = await ctl("doctor")
    assert (done.code, words in done.out) == (code, True)
    shown = json.loads((await ctl("doctor", "-o", "json")).out)
    assert [each["code"] for each in shown] == [each.code for each in findings]


class StoppedGateway:
    """A program gatewayd that prints something else."""

    def __init__(self, out: str, err: str = "") -> None:
        self.out, self.err = out, err
        self.asked: list[str] = []

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.asked = command
        return subprocess.CompletedProcess(command, 0, self.out, self.err)


async def test_a_stopped_gateway_is_asked_by_its_program(
    ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = StoppedGateway(json.dumps({"findings": []}))
    monkeypatch.setattr(module.subprocess, "run", gateway.run)
    ctl.socket = tmp_path / "none.sock"
    done = await ctl("doctor", "-f", "x.toml", "-o", "name")
    assert (done.code, done.out) == (1, "daemon-stopped\n")
    assert gateway.asked[1:] == ["-m", "gatewayd", "--doctor", "-f", "x.toml"]
    gateway.out, gateway.err = "", "Traceback\nModuleNotFoundError: no gatewayd"
    failed = await ctl("doctor")
    assert (failed.code, failed.out) == (1, "")
    assert "cannot check the stopped gateway: ModuleNotFoundError: no gatewayd" in failed.err
