"""The Debian package on a fresh Debian 12: built, installed, upgraded, removed and purged."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.fakes.daemons.daemon import free_port
from tests.faults.debian import NEEDED, START_SECONDS, Machine, booted, make_root
from tests.faults.doctored import ROWS, Provoked, findings
from tests.test_manpages import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3600),
    pytest.mark.real(*NEEDED, "dh", "lintian"),
]

OLD, NEW = "0.0.9-1", "0.1.0-1"
CONFIGURATION = "/etc/gatewayd/gatewayd.toml"
UNITS = ("gatewayd.socket", "gatewayd-control.socket", "gatewayd.service")
OLD_SCHEMA = """
import asyncio
from pathlib import Path
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.engine.migrate import apply_migrations, known_migrations

async def make():
    async with Database.open(sqlite(Path("/var/lib/gatewayd/gatewayd.db"))) as database:
        await database.own()
        await apply_migrations(database, known_migrations()[:-1])

asyncio.run(make())
"""


def package(version: str) -> str:
    """Return the name of the package of a version."""
    made = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return f"gatewayd_{version}_{made.stdout.strip()}.deb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package, and one of a version before with an older configuration."""
    folder = tmp_path_factory.mktemp("packages")
    build = [str(ROOT / "config" / "debian" / "build"), "--output", str(folder), "--version", NEW]
    done = subprocess.run(build, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", str(folder / package(NEW)), str(tree)], check=True, timeout=600)
    control = tree / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {NEW}", f"Version: {OLD}"))
    sample = tree / CONFIGURATION.lstrip("/")
    sample.write_text(f"# As of {OLD}.\n{sample.read_text()}")
    build = ["dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "-b", str(tree), str(folder / package(OLD))]
    subprocess.run(build, check=True, timeout=600, capture_output=True)
    shutil.rmtree(tree)
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Machine]:
    """Run a Debian in which the older version is installed, on a port that is free here."""
    if os.geteuid() != 0:
        # For want of a right, not of a component: GATEWAYD_REQUIRE_REAL does not ask for it.
        pytest.skip("only root can start another systemd")
    if not shutil.which("systemd-nspawn"):
        missing("systemd-nspawn", "the program systemd-nspawn is not installed")
    root = make_root(tmp_path_factory.mktemp("debian"), ROOT)
    for version in (OLD, NEW):
        shutil.copy(folder / package(version), root / "src")
    # The root shares its ports with this machine.
    places = root / "etc" / "systemd" / "system" / "gatewayd.socket.d"
    places.mkdir(parents=True)
    (places / "port.conf").write_text(f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{free_port()}\n")
    with booted(root) as running:
        running.sh("apt-get update")
        install(running, OLD)
        yield running


def install(machine: Machine, version: str) -> str:
    """Install a package as an unattended upgrade does, which keeps a changed configuration."""
    return machine.sh(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall -o Dpkg::Options::=--force-confdef"
        f" -o Dpkg::Options::=--force-confold ./{package(version)} 2>&1"
    )


def is_well(machine: Machine) -> None:
    for unit in UNITS:
        machine.wait_for(unit, "active")
    assert machine.sh("gatewayctl health -o name").strip() == "pass"


def test_an_installed_package_is_a_service(machine: Machine) -> None:
    is_well(machine)
    assert machine.sh("dpkg-query -f '${Version}' -W gatewayd") == OLD
    assert machine.sh(f"stat -c '%U:%G %a' {CONFIGURATION}").strip() == "root:gatewayd 640"
    assert machine.sh("stat -c '%U:%G %a' /var/lib/gatewayd").strip() == "gatewayd:gatewayd 700"
    assert CONFIGURATION in machine.sh("dpkg-query -f '${Conffiles}' -W gatewayd")
    assert machine.sh("systemctl is-enabled gatewayd-backup.timer", status=None).strip() == "disabled"
    machine.sh("test -e /usr/share/man/man8/gatewayd.8.gz && test -e /usr/share/man/man1/gatewayctl.1.gz")
    for place in ("bash-completion/completions/gatewayctl", "zsh/vendor-completions/_gatewayctl"):
        machine.sh(f"test -s /usr/share/{place}")
    machine.sh("test -s /usr/share/fish/vendor_completions.d/gatewayctl.fish")
    # It is compiled, so that a start does not do it again.
    machine.sh("ls /usr/lib/gatewayd/lib/python3*/site-packages/gatewayd/__pycache__/*.pyc")
    assert "gatewayd" not in machine.sh("dpkg -V gatewayd")


def test_completion_knows_the_commands(machine: Machine) -> None:
    script = (
        "source /usr/share/bash-completion/completions/gatewayctl;"
        " COMP_WORDS=(gatewayctl heal); COMP_CWORD=1; _gatewayctl_completion gatewayctl; echo ${COMPREPLY[0]}"
    )
    assert machine.sh(f"bash -c '{script}'").strip() == "health"


def test_the_timer_makes_a_backup(machine: Machine) -> None:
    machine.sh("systemctl enable --now gatewayd-backup.timer && systemctl start gatewayd-backup.service")
    assert machine.sh("ls /var/lib/gatewayd/backups").strip()


def test_an_upgrade_migrates_the_database_and_keeps_the_configuration(machine: Machine) -> None:
    machine.sh(f"echo '# kept' >> {CONFIGURATION}")
    machine.sh("systemctl stop gatewayd.socket gatewayd-control.socket gatewayd.service")
    machine.sh("rm /var/lib/gatewayd/gatewayd.db*")
    machine.sh(
        f"cat > /tmp/old.py <<'END'\n{OLD_SCHEMA}END\n"
        "runuser -u gatewayd -- /usr/lib/gatewayd/bin/python /tmp/old.py"
    )
    machine.sh("systemctl start gatewayd", status=None)
    machine.wait_for("gatewayd.service", "failed")
    told = install(machine, NEW)
    assert "not as it was" not in told
    is_well(machine)
    assert machine.sh("dpkg-query -f '${Version}' -W gatewayd") == NEW
    assert machine.sh(f"tail -n 1 {CONFIGURATION}").strip() == "# kept"
    assert machine.sh(f"stat -c '%U:%G %a' {CONFIGURATION}").strip() == "root:gatewayd 640"
    assert machine.sh("ls /var/lib/gatewayd/gatewayd.db.before-*").strip()
    machine.sh("gatewayctl database status")


def test_the_sockets_stay_open_while_a_package_is_installed_again(machine: Machine) -> None:
    before = machine.sh("systemctl show -P ActiveEnterTimestampMonotonic gatewayd.socket")
    install(machine, NEW)
    is_well(machine)
    assert machine.sh("systemctl show -P ActiveEnterTimestampMonotonic gatewayd.socket") == before


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_what_the_doctor_advises_mends(machine: Machine, row: Provoked) -> None:
    """The command of the finding is executed as it is printed, by a shell of root."""
    machine.sh(row.script, folder="/")
    [finding] = [each for code, each in findings(machine).items() if code == row.code]
    assert row.command in finding["command"]
    machine.sh(finding["command"], folder="/")
    deadline = time.monotonic() + START_SECONDS
    while row.code in (found := findings(machine)):
        assert time.monotonic() < deadline, found[row.code]
        time.sleep(0.5)
    assert "daemon-stopped" not in found
    is_well(machine)
    machine.sh(row.after, folder="/")
    is_well(machine)


def test_a_removal_keeps_configuration_and_state(machine: Machine) -> None:
    machine.sh("DEBIAN_FRONTEND=noninteractive apt-get remove -y gatewayd")
    for unit in UNITS:
        assert machine.state(unit) in {"inactive", "failed"}
    machine.sh(f"test -e {CONFIGURATION} && test -e /var/lib/gatewayd/gatewayd.db")
    assert not machine.sh("find /usr/lib/gatewayd -name '*.pyc' 2>/dev/null || true").strip()
    install(machine, NEW)
    is_well(machine)


def test_a_purge_leaves_the_backups_alone(machine: Machine) -> None:
    told = machine.sh("DEBIAN_FRONTEND=noninteractive apt-get purge -y gatewayd 2>&1")
    assert "the backups in /var/lib/gatewayd/backups stay" in told
    assert machine.sh("ls /var/lib/gatewayd").strip() == "backups"
    machine.sh("! test -e /etc/gatewayd && ! test -e /usr/lib/gatewayd && ! test -e /usr/bin/gatewayd")
    assert "gatewayd" not in machine.sh("find /etc/systemd -name 'gatewayd*.service' -o -xtype l")
    assert machine.sh("dpkg-query -l 'gatewayd' 2>/dev/null | grep -c '^rc' || true").strip() == "0"
