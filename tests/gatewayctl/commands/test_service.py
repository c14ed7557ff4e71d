"""`gatewayctl service`."""

import json
import subprocess
from pathlib import Path

import pytest

from gatewayctl.commands import service
from gatewayctl.main import main
from gatewayctl.service import installation


def test_install_and_uninstall_below_a_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--prefix", str(tmp_path), "--yes", "-o", "json"]) == 0
    told = capsys.readouterr()
    steps = json.loads(told.out)
    unit = tmp_path / "usr/local/lib/systemd/system/gatewayd.service"
    assert {"target": str(unit), "outcome": "created", "detail": "", "dry_run": False} in steps
    assert f"ExecStart={service.place(tmp_path).programs}/gatewayd\n" in unit.read_text()
    assert "Start it" not in told.err
    assert main(["service", "uninstall", "--prefix", str(tmp_path), "--dry-run"]) == 0
    assert "dry run: removed" in capsys.readouterr().out
    assert unit.exists()
    assert main(["service", "uninstall", "--prefix", str(tmp_path), "--yes"]) == 0
    assert not unit.exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_it_asks_first(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", verb, "--prefix", str(tmp_path)]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_steps_before_a_failure_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = tmp_path / "usr/local/bin/gatewayctl"
    command.parent.mkdir(parents=True)
    command.write_text("another")
    assert main(["service", "install", "--prefix", str(tmp_path), "--yes"]) == 6
    told = capsys.readouterr()
    assert told.out == ""
    assert f"created {tmp_path}/usr/local/bin/gatewayd\n" in told.err
    assert "another program is there" in told.err


def test_the_running_system_is_told_how_to_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(service, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "HIDDEN", ())
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, "", "")
    )
    assert main(["service", "install", "--prefix", str(tmp_path), "--yes"]) == 0
    assert "systemctl enable --now gatewayd.socket" in capsys.readouterr().err
