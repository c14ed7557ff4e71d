"""Checks of the machine: the clock, open files, the unit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.doctor import machine, service_commands

SHIPPED = Path(__file__).parents[3] / "systemd" / "gatewayd.service"


@pytest.mark.parametrize(("newest", "codes"), [(1060, []), (1061, ["clock-behind"]), (0, [])])
def test_the_clock(newest: int, codes: list[str]) -> None:
    found = list(machine.check_clock(1000, newest))
    assert [each.code for each in found] == codes
    assert all(each.command == "timedatectl set-ntp true" for each in found)


@pytest.mark.parametrize(("limit", "codes"), [(4096, []), (1024, ["descriptors-low"])])
def test_open_files(limit: int, codes: list[str]) -> None:
    found = list(machine.check_descriptors(limit))
    assert [each.code for each in found] == codes
    assert all("LimitNOFILE=65536" in each.command for each in found)
    assert "LimitNOFILE=65536" in SHIPPED.read_text()


def install(folder: Path, change: Callable[[str], str] = str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / machine.UNIT).write_text(change(SHIPPED.read_text()))


def test_the_shipped_unit_and_none_have_no_finding(tmp_path: Path) -> None:
    assert list(machine.check_unit([tmp_path])) == []
    install(tmp_path)
    assert list(machine.check_unit([tmp_path])) == []


def test_a_loosened_unit_is_mended_by_the_shipped_one(tmp_path: Path) -> None:
    install(tmp_path, lambda text: text.replace("NoNewPrivileges=yes", "").replace("=strict", "=full"))
    [finding] = machine.check_unit([tmp_path])
    command = f"{service_commands.INSTALL} && rm {tmp_path}/{machine.UNIT} && {service_commands.RESTART}"
    assert (finding.code, finding.command) == ("unit-open", command)
    assert finding.sentence.endswith(": NoNewPrivileges, ProtectSystem")
    install(tmp_path)
    assert list(machine.check_unit([tmp_path])) == []


@pytest.mark.parametrize(
    ("name", "command"), [("INSTALLED", service_commands.INSTALL), ("PACKAGED", service_commands.REINSTALL)]
)
def test_a_loosened_unit_is_installed_again_by_what_installed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    monkeypatch.setattr(machine, name, tmp_path if name == "INSTALLED" else (tmp_path,))
    install(tmp_path, lambda text: text.replace("=strict", "=full"))
    [finding] = machine.check_unit([tmp_path])
    assert finding.command == f"{command} && {service_commands.RESTART}"


def test_a_loosened_copy_that_hides_the_unit_is_removed(tmp_path: Path) -> None:
    lib, etc = tmp_path / "lib", tmp_path / "an etc"
    install(lib)
    install(etc, lambda text: text.replace("=strict", "=full"))
    [finding] = machine.check_unit([etc, lib])
    assert finding.command == f"rm '{etc}/{machine.UNIT}' && {service_commands.RESTART}"


def test_a_drop_in_that_loosens_is_named(tmp_path: Path) -> None:
    lib, etc = tmp_path / "lib", tmp_path / "etc"
    install(lib)
    drop = etc / f"{machine.UNIT}.d" / "mine.conf"
    drop.parent.mkdir(parents=True)
    drop.write_text("[Service]\n# ProtectHome=no\nPrivateTmp=no\n")
    [finding] = machine.check_unit([etc, lib])
    assert finding.sentence.endswith(": PrivateTmp")
    assert finding.command == f"rm {drop} && {service_commands.RESTART}"
    drop.unlink()
    assert list(machine.check_unit([etc, lib])) == []
