"""The service on a fresh Debian 12: README's section by copy and paste, and a typo that is mended."""

import contextlib
import os
import re
import socket
from collections.abc import Iterator

import pytest

from tests.conftest import missing
from tests.faults.debian import NEEDED, Machine, booted, make_root
from tests.test_manpages import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3600),
    pytest.mark.real(*NEEDED),
]

CONFIGURATION = "/etc/gatewayd/gatewayd.toml"
UNITS = ("gatewayd.socket", "gatewayd-control.socket", "gatewayd.service")
TYPO = "prot = 1"


def blocks() -> list[str]:
    """Return the commands of README's section, block by block."""
    section = (ROOT / "README.md").read_text().partition("## Run it as a service\n")[2].partition("\n## ")[0]
    return re.findall(r"(?ms)^```sh\n(.*?)^```$", section)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Run a Debian on which the first block was walked."""
    if os.geteuid() != 0:
        # For want of a right, not of a component: GATEWAYD_REQUIRE_REAL does not ask for it.
        pytest.skip("only root can start another systemd")
    with contextlib.closing(socket.socket()) as probe:
        if probe.connect_ex(("127.0.0.1", 8080)) == 0:
            missing("port 8080", "the root shares it with this machine, where it is in use")
    root = make_root(tmp_path_factory.mktemp("debian"), ROOT)
    with booted(root) as running:
        running.sh("apt-get update")
        running.sh(blocks()[0])
        yield running


def is_well(machine: Machine) -> None:
    for unit in UNITS:
        machine.wait_for(unit, "active")
    assert machine.sh("curl -sf http://127.0.0.1:8080/readyz")
    assert machine.sh("gatewayctl health -o name").strip() == "pass"


def test_the_section_of_readme_leads_to_a_service(machine: Machine) -> None:
    is_well(machine)
    told = machine.sh(blocks()[1])
    assert "smollm2-135m-instruct" in told
    assert "gatewayd" in told
    machine.sh("man -w 5 gatewayd.toml; man -w 1 gatewayctl")
    assert machine.sh(f"stat -c '%U:%G %a' {CONFIGURATION}").strip() == "root:gatewayd 640"
    machine.sh(blocks()[2])
    assert "https://ai.example.org" in machine.sh("gatewayctl setting list -o json")
    assert "reloaded" in machine.sh("journalctl -u gatewayd --no-pager")
    machine.sh(blocks()[3])
    is_well(machine)
    machine.sh("gatewayctl chat --max-tokens 5 smollm2-135m-instruct hello")


def test_it_is_activated_and_restarted_and_installed_again(machine: Machine) -> None:
    machine.sh("systemctl stop gatewayd")
    assert machine.sh("curl -sf --max-time 60 http://127.0.0.1:8080/livez")
    is_well(machine)
    machine.sh("systemctl restart gatewayd")
    is_well(machine)
    again = machine.sh("gatewayctl service install --yes -o json")
    assert set(re.findall(r'"outcome": "(\w+)"', again)) <= {"unchanged", "kept", "run"}
    # What used to be advised for a file that root owns.
    machine.sh(
        f"chown root:root {CONFIGURATION}; chmod 600 {CONFIGURATION}; gatewayctl service install --yes"
    )
    machine.sh("systemctl restart gatewayd")
    is_well(machine)
    machine.sh(
        "systemctl enable --now gatewayd-ingest@none.timer"
        " && systemctl disable --now gatewayd-ingest@none.timer"
    )


def test_a_typo_that_is_mended_ends_in_a_healthy_service(machine: Machine) -> None:
    machine.sh(f"echo '{TYPO}' >> {CONFIGURATION}")
    machine.sh("systemctl restart gatewayd", status=None)
    # Clients come until the socket gives up, those of the control socket too.
    machine.sh(
        "for n in $(seq 300); do curl -s -m 3 http://127.0.0.1:8080/ || true;"
        " systemctl -q is-failed gatewayd.socket && break; done >/dev/null 2>&1; true"
    )
    machine.wait_for("gatewayd.socket", "failed")
    machine.sh("for n in $(seq 15); do timeout 3 gatewayctl health || true; done >/dev/null 2>&1")
    machine.wait_for("gatewayd.service", "failed")
    machine.sh(f"sed -i '/^{TYPO}$/d' {CONFIGURATION}")
    machine.sh(blocks()[3])
    is_well(machine)
    assert machine.sh("systemctl show -P NRestarts gatewayd").strip() == "0"
    log = machine.sh("journalctl -u gatewayd --no-pager")
    assert "unknown setting prot" in log
    assert "Traceback" not in log


def test_a_daemon_without_its_control_socket_says_what_is_wrong(machine: Machine) -> None:
    machine.sh(f"echo 'control_group = \"gatewayd-admin\"' >> {CONFIGURATION}")
    machine.sh("systemctl stop gatewayd-control.socket gatewayd.socket gatewayd")
    machine.sh("systemctl mask --runtime gatewayd-control.socket")
    try:
        machine.sh("systemctl start gatewayd", status=None)
        machine.wait_for("gatewayd.service", "failed")
        assert machine.sh("systemctl show -P ExecMainStatus gatewayd").strip() == "78"
    finally:
        machine.sh("systemctl unmask --runtime gatewayd-control.socket")
    log = machine.sh("journalctl -u gatewayd --no-pager")
    assert "to control_group 'gatewayd-admin': operation not permitted" in log
    assert "Traceback" not in log
    machine.sh("systemctl start gatewayd")
    is_well(machine)


def test_an_uninstallation_leaves_configuration_and_state(machine: Machine) -> None:
    timer = "gatewayd-ingest@none.timer"
    machine.sh(f"systemctl enable --now {timer}")
    machine.wait_for(timer, "active")
    machine.sh("/opt/gatewayd/bin/gatewayctl service uninstall --yes")
    assert "gatewayd" not in machine.sh("find /etc/systemd -xtype l")
    for unit in (*UNITS, timer):
        assert machine.sh(f"systemctl show -P LoadState {unit}").strip() == "not-found"
    machine.sh("! test -e /usr/local/bin/gatewayd; ! test -e /usr/local/share/man/man8/gatewayd.8")
    machine.sh(f"test -e {CONFIGURATION} && test -e /var/lib/gatewayd/gatewayd.db")
