"""Tests for gatewayctl.service.installation."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.service import assets, installation
from gatewayctl.service.assets import CONFIGURATION
from gatewayctl.service.installation import Place, ServiceInstallation, run_command

PROGRAMS = Path("/opt/gatewayd/bin")
PYTHON = Path("/usr/bin/python3.11")


@dataclass
class Machine:
    """A running system below a folder, whose commands are noted; one may fail."""

    root: Path
    is_image: bool = False
    bad: str = ""
    ran: list[str] = field(default_factory=list)

    def made(self, verb: str = "install", *, dry_run: bool = False) -> dict[str, str]:
        """Return what each step did, by its target below the root."""
        place = Place(self.root, PROGRAMS, PYTHON, self.is_image)
        steps = getattr(ServiceInstallation(place, self._run, dry_run=dry_run), verb)()
        return {step.target.replace(str(self.root), ""): step.outcome for step in steps}

    def _run(self, command: Sequence[str]) -> str:
        self.ran.append(" ".join(command).replace(str(self.root), ""))
        return "no such user" if self.bad and command[0] == self.bad else ""

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(installation, "BOOTED", tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    return Machine(root)


INSTALLED = {
    "usr/local/lib/systemd/system/gatewayd.service",
    "usr/local/lib/systemd/system/gatewayd.socket",
    "usr/local/lib/systemd/system/gatewayd-control.socket",
    "usr/local/lib/systemd/system/gatewayd-cluster.socket",
    "usr/local/lib/systemd/system/gatewayd@.service",
    "usr/local/lib/systemd/system/gatewayd-ingest@.service",
    "usr/local/lib/systemd/system/gatewayd-ingest@.timer",
    "usr/local/lib/sysusers.d/gatewayd.conf",
    "usr/local/lib/tmpfiles.d/gatewayd.conf",
    "usr/local/share/man/man8/gatewayd.8",
    "usr/local/share/man/man1/gatewayctl.1",
    "usr/local/bin/gatewayd",
    "usr/local/bin/gatewayctl",
    "etc/gatewayd/gatewayd.toml",
}


def test_everything_is_installed_and_then_made_known(machine: Machine) -> None:
    made = machine.made()
    assert machine.files() >= INSTALLED
    assert set(made.values()) == {"created", "run"}
    assert machine.ran == [
        "systemd-sysusers /usr/local/lib/sysusers.d/gatewayd.conf",
        "systemd-tmpfiles --create /usr/local/lib/tmpfiles.d/gatewayd.conf",
        "systemctl daemon-reload",
    ]
    assert (machine.root / "usr/local/bin/gatewayctl").readlink() == PROGRAMS / "gatewayctl"
    modes = {
        name: stat.S_IMODE((machine.root / name).stat().st_mode) for name in INSTALLED if "bin" not in name
    }
    assert modes.pop(str(CONFIGURATION)) == 0o640
    assert set(modes.values()) == {0o644}


def test_a_second_time_changes_nothing(machine: Machine) -> None:
    machine.made()
    assert set(machine.made().values()) == {"unchanged", "run"}


def test_a_dry_run_tells_the_same_and_keeps_nothing(machine: Machine) -> None:
    told = machine.made(dry_run=True)
    assert machine.files() == set()
    assert machine.ran == []
    assert told == machine.made()


def test_a_changed_configuration_stays_and_old_units_do_not(machine: Machine) -> None:
    machine.made()
    configuration = machine.root / CONFIGURATION
    configuration.write_text("port = 1\n")
    unit = machine.root / assets.UNITS / "gatewayd.service"
    unit.write_text("an older one")
    command = machine.root / assets.COMMANDS / "gatewayd"
    command.unlink()
    command.symlink_to("/opt/older/bin/gatewayd")
    made = machine.made()
    assert {name: outcome for name, outcome in made.items() if outcome in {"changed", "kept"}} == {
        f"/{CONFIGURATION}": "kept",
        f"/{assets.UNITS}/gatewayd.service": "changed",
        "/usr/local/bin/gatewayd": "changed",
    }
    assert configuration.read_text() == "port = 1\n"
    assert command.readlink() == PROGRAMS / "gatewayd"


def test_another_program_of_that_name_is_not_replaced(machine: Machine) -> None:
    command = machine.root / assets.COMMANDS / "gatewayd"
    command.parent.mkdir(parents=True)
    command.write_text("another")
    with pytest.raises(CommandError, match="another program is there") as caught:
        machine.made()
    assert caught.value.kind == "conflict"
    assert command.read_text() == "another"


def test_an_image_is_not_the_running_system(machine: Machine) -> None:
    machine.is_image = True
    made = machine.made()
    assert machine.files() >= INSTALLED
    assert machine.ran == []
    assert made["systemctl daemon-reload"] == "skipped"


def test_a_system_without_systemd_is_not_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installation, "BOOTED", tmp_path / "absent")
    assert machine.made()["systemctl daemon-reload"] == "skipped"
    assert len(machine.ran) == 2


def test_a_command_that_fails_is_named(machine: Machine) -> None:
    machine.bad = "systemd-tmpfiles"
    with pytest.raises(CommandError, match=r"cannot run systemd-tmpfiles --create .*: no such user"):
        machine.made()


@pytest.mark.parametrize("folder", ["/root", "/home/ann/bin", "/tmp/x", "/opt/with blank/bin"])
def test_what_the_service_cannot_start_is_refused(machine: Machine, folder: str) -> None:
    for place in (
        Place(machine.root, Path(folder), PYTHON, is_image=False),
        Place(machine.root, PROGRAMS, Path(folder), is_image=False),
    ):
        if " " in folder and place.programs == PROGRAMS:
            continue
        with pytest.raises(CommandError, match="cannot install the service"):
            list(ServiceInstallation(place, machine._run).install())
    assert machine.files() == set()


def test_what_may_not_be_written_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(CommandError, match=r"cannot write .*: permission denied") as caught:
        machine.made()
    assert (caught.value.kind, caught.value.hint) == ("forbidden", "run it as root")


def test_an_uninstallation_leaves_configuration_and_state(machine: Machine) -> None:
    machine.made()
    machine.ran.clear()
    made = machine.made("uninstall")
    assert machine.files() == {str(CONFIGURATION)}
    assert machine.ran == [
        "systemctl disable --now gatewayd.socket gatewayd-control.socket gatewayd.service",
        "systemctl stop gatewayd-ingest@*.timer gatewayd-ingest@*.service gatewayd-backup.service",
        "systemctl daemon-reload",
    ]
    assert made["/etc/gatewayd"] == made["/var/lib/gatewayd"] == "kept"
    machine.ran.clear()
    assert set(machine.made("uninstall").values()) == {"unchanged", "kept", "run"}
    assert machine.ran == ["systemctl daemon-reload"]


@pytest.mark.parametrize("is_image", [False, True])
def test_an_uninstallation_disables_timers(machine: Machine, is_image: bool) -> None:
    machine.made()
    machine.ran.clear()
    machine.is_image = is_image
    wants = machine.root / "etc/systemd/system/timers.target.wants"
    wants.mkdir(parents=True)
    for name in ("gatewayd-ingest@pages.timer", "other@pages.timer"):
        (wants / name).symlink_to(f"/{assets.UNITS}/gatewayd-ingest@.timer")
    machine.made("uninstall")
    assert [path.name for path in wants.iterdir()] == ["other@pages.timer"]
    assert (
        not machine.ran
        if is_image
        else machine.ran[0].endswith("gatewayd.service gatewayd-ingest@pages.timer")
    )


@pytest.mark.parametrize(
    ("verb", "asked"), [("install", "read_bytes"), ("install", "is_symlink"), ("uninstall", "lstat")]
)
def test_what_may_not_be_looked_at_is_for_root(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, verb: str, asked: str
) -> None:
    machine.made()
    ask = getattr(Path, asked)

    def refuse(path: Path, *args: object, **options: object) -> object:
        if path.is_relative_to(machine.root / "usr"):
            raise PermissionError(13, "Permission denied")
        return ask(path, *args, **options)

    monkeypatch.setattr(Path, asked, refuse)
    with pytest.raises(CommandError, match=r"cannot write /.*/usr/.*: permission denied") as caught:
        machine.made(verb)
    assert (caught.value.kind, caught.value.hint) == ("forbidden", "run it as root")


def test_an_uninstallation_leaves_links_of_others(machine: Machine) -> None:
    machine.made()
    command = machine.root / assets.COMMANDS / "gatewayd"
    command.unlink()
    command.symlink_to("/opt/other/bin/gatewayd")
    assert machine.made("uninstall")["/usr/local/bin/gatewayd"] == "kept"
    assert command.is_symlink()


def test_programs_that_pip_put_there_are_no_links_and_stay(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = machine.root / assets.COMMANDS
    commands.mkdir(parents=True)
    for name in assets.PROGRAMS:
        (commands / name).write_text("a program")
    monkeypatch.setattr(installation, "HIDDEN", ())
    place = Place(machine.root, commands, PYTHON, is_image=False)
    outcomes = {step.target: step.outcome for step in ServiceInstallation(place, machine._run).install()}
    assert outcomes[str(commands / "gatewayd")] == "unchanged"
    outcomes = {step.target: step.outcome for step in ServiceInstallation(place, machine._run).uninstall()}
    assert outcomes[str(commands / "gatewayd")] == "kept"
    assert (commands / "gatewayd").read_text() == "a program"


def test_a_command_of_an_image_is_no_link_to_itself(machine: Machine) -> None:
    place = Place(machine.root, Path("/", assets.COMMANDS), PYTHON, is_image=True)
    outcomes = {step.target: step.outcome for step in ServiceInstallation(place).install()}
    assert outcomes[str(machine.root / assets.COMMANDS / "gatewayd")] == "unchanged"
    assert not (machine.root / assets.COMMANDS / "gatewayd").is_symlink()


def test_folders_can_be_read_whatever_the_mask_is(machine: Machine) -> None:
    before = os.umask(0o077)
    try:
        machine.made()
    finally:
        os.umask(before)
    for folder in (assets.PAGES, assets.PAGES / "man8", assets.UNITS, assets.COMMANDS, CONFIGURATION.parent):
        assert stat.S_IMODE((machine.root / folder).stat().st_mode) == 0o755, folder


def test_a_configuration_that_may_not_be_read_is_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.made()
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == machine.root / CONFIGURATION:
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert machine.made(dry_run=True)[f"/{CONFIGURATION}"] == "kept"


def test_a_way_to_programs_that_are_hidden_is_refused(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "HIDDEN", ("/home",))
    way = tmp_path / "way"
    way.symlink_to("/home/gatewayd")
    place = Place(machine.root, way / "bin", PYTHON, is_image=False)
    with pytest.raises(CommandError, match="the service sees nothing of /home/gatewayd/bin"):
        list(ServiceInstallation(place, machine._run).install())


@pytest.mark.process
def test_commands_are_run_and_their_last_words_kept() -> None:
    assert run_command(["true"]) == ""
    assert run_command(["false"]) == "exit status 1"
    assert run_command(["sh", "-c", "echo one >&2; echo two >&2; exit 3"]) == "two"
    assert "no-such-program" in run_command(["no-such-program"])
