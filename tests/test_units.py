"""The units of the service manager: correct, hardened, and in step with the daemon."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import typer

from gatewayctl.failures import INTERRUPTED, TRY_LATER
from gatewayctl.main import app
from gatewayd.observe import systemd as manager
from gatewayd.settings import Settings, definitions

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "systemd"
SERVICES = sorted(FOLDER.glob("*.service"))
SOCKETS = sorted(FOLDER.glob("*.socket"))
UNITS = [*SERVICES, *SOCKETS, *sorted(FOLDER.glob("*.timer")), *sorted(FOLDER.glob("*.path"))]

# What processes that read documents confine themselves with; no set of systemd 252 has it.
LANDLOCK = "landlock_create_ruleset landlock_add_rule landlock_restrict_self"

# Tenths of the exposure that systemd-analyze computes: 15 is 1.5, within "OK".
EXPOSURE_LIMIT = 15


def directives(unit: Path) -> dict[str, list[str]]:
    """Return the values of each directive of a unit, in order."""
    return directives_of(unit.read_text())


def directives_of(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if "=" in line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


SERVICE = directives(FOLDER / "gatewayd.service")
NODE = directives(FOLDER / "gatewayd@.service")
CLUSTER_SOCKET = FOLDER / "gatewayd-cluster.socket"


def run(*command: str) -> str:
    """Run a program and return what it said; fail with it when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def runnable(tmp_path: Path) -> Path:
    """Copy the units with a program in ExecStart= that exists: the daemon need not be installed here."""
    for unit in UNITS:
        text = re.sub(r"(?m)^(ExecStart=)/usr/bin/gateway(?:d|ctl)\b", r"\1/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    return tmp_path


def seconds(text: str) -> int:
    """Return a time span that is a bare number of seconds."""
    assert text.isdigit(), text
    return int(text)


@pytest.mark.real("systemd-analyze")
def test_units_are_correct(runnable: Path) -> None:
    # The pages named in Documentation= are checked by the tests of the pages; here they are not installed.
    assert run("systemd-analyze", "verify", "--man=no", *map(str, sorted(runnable.iterdir()))) == ""


@pytest.mark.real("systemd-analyze")
@pytest.mark.parametrize("unit", [path.name for path in SERVICES])
def test_services_are_hardened(unit: str, runnable: Path) -> None:
    threshold = f"--threshold={EXPOSURE_LIMIT}"
    run("systemd-analyze", "security", "--offline=true", "--no-pager", threshold, str(runnable / unit))


def test_readers_of_documents_may_confine_themselves() -> None:
    assert LANDLOCK in SERVICE["SystemCallFilter"]


def test_the_service_follows_the_protocol_of_the_daemon() -> None:
    assert SERVICE["Type"] == ["notify"]
    assert SERVICE["NotifyAccess"] == ["main"]
    assert SERVICE["ExecStart"] == ["/usr/bin/gatewayd"]
    assert SERVICE["ExecReload"] == ["/bin/sh -c 'kill -HUP $MAINPID'"]
    assert seconds(SERVICE["WatchdogSec"][0]) >= 10


def test_a_backup_has_the_secrets_of_the_daemon() -> None:
    backup = directives(FOLDER / "gatewayd-backup.service")
    assert backup["LoadCredential"] == SERVICE["LoadCredential"]


def test_a_bad_configuration_is_not_started_again() -> None:
    assert SERVICE["Restart"] == ["on-failure"]
    assert SERVICE["RestartPreventExitStatus"] == ["64 78"]


def test_a_stop_lets_the_built_in_model_finish() -> None:
    # With another mode the built-in model would be stopped before the answers that need it.
    assert SERVICE["KillMode"] == ["mixed"]


def test_a_start_by_hand_is_never_refused() -> None:
    # The default is five starts in ten seconds, which waiting clients use up while the configuration is bad.
    assert SERVICE["StartLimitIntervalSec"] == ["0"]


def test_a_start_opens_sockets_that_failed() -> None:
    sockets = {unit.name for unit in SOCKETS if unit != CLUSTER_SOCKET}
    for service, wanted in ((SERVICE, sockets), (NODE, {CLUSTER_SOCKET.name})):
        assert wanted <= {name for line in service["Wants"] for name in line.split()}
        assert wanted <= {name for line in service["After"] for name in line.split()}


@pytest.mark.parametrize("unit", SOCKETS, ids=lambda unit: unit.name)
def test_waiting_clients_do_not_start_a_bad_configuration_for_ever(unit: Path) -> None:
    found = directives(unit)
    assert seconds(found["TriggerLimitBurst"][0]) * 5 < seconds(found["TriggerLimitIntervalSec"][0])


def test_clients_of_the_control_socket_keep_their_names() -> None:
    # In a user namespace the peer credentials of every user but root read as nobody's.
    assert "PrivateUsers" not in SERVICE
    assert "DynamicUser" not in SERVICE


def test_the_runtime_directory_outlives_the_daemon() -> None:
    # Its removal would take the control socket away from the socket unit.
    assert SERVICE["RuntimeDirectoryPreserve"] == ["yes"]
    assert SERVICE["RuntimeDirectory"] == ["gatewayd"]


def test_every_secret_can_come_as_a_credential() -> None:
    lines = dict(line.split(":", 1) for line in SERVICE["LoadCredential"])
    for setting in definitions().values():
        if setting.secret and setting.credentials:
            assert set(setting.credentials) & set(lines), f"no LoadCredential= for {setting.name}"


def test_a_missing_credential_does_not_stop_the_start() -> None:
    # A plain name is looked up in the credential stores and may be absent; an absolute path may not.
    for line in SERVICE["LoadCredential"]:
        name, _, source = line.partition(":")
        assert source == f"gatewayd.{name}"


def test_socket_names_are_those_that_the_daemon_knows() -> None:
    names = {unit.name: directives(unit)["FileDescriptorName"] for unit in SOCKETS}
    assert names == {
        "gatewayd.socket": ["http"],
        "gatewayd-control.socket": ["control"],
        "gatewayd-cluster.socket": ["http"],
    }
    assert {"http", "control"} == set(manager.FAMILIES)


def test_sockets_stand_where_the_daemon_would_listen() -> None:
    fields = Settings.model_fields
    http = directives(FOLDER / "gatewayd.socket")
    control = directives(FOLDER / "gatewayd-control.socket")
    assert http["ListenStream"] == [f"{fields['host'].default}:{fields['port'].default}"]
    assert control["ListenStream"] == [str(fields["control_socket"].default)]
    assert control["SocketMode"] == ["0660"]
    assert control["Service"] == ["gatewayd.service"]


def test_a_node_is_run_as_a_daemon_alone_is_except_for_what_is_its_own() -> None:
    own = {
        *("Description", "Documentation", "Conflicts", "Wants", "After", "Sockets", "Environment", "Also"),
        *("StateDirectory", "RuntimeDirectory", "RuntimeDirectoryPreserve"),
    }
    assert {name for name in {*NODE, *SERVICE} if NODE.get(name) != SERVICE.get(name)} == own
    assert NODE["Environment"] == ["CLUSTER=true NODE_NAME=%H-%i"]
    assert {"CLUSTER", "NODE_NAME"} <= {name for row in definitions().values() for name in row.variables}
    assert NODE["StateDirectory"] == NODE["RuntimeDirectory"] == ["gatewayd/%i"]


def test_all_nodes_of_a_machine_have_one_socket_and_no_daemon_alone_beside_them() -> None:
    assert NODE["Sockets"] == [CLUSTER_SOCKET.name]
    shared = directives(CLUSTER_SOCKET)
    assert shared["Service"] == ["gatewayd@1.service"]
    assert shared["ListenStream"] == directives(FOLDER / "gatewayd.socket")["ListenStream"]
    assert {"gatewayd.service", "gatewayd.socket"} <= {*NODE["Conflicts"][0].split()}
    assert shared["Conflicts"] == ["gatewayd.socket"]


def test_users_and_groups_of_the_units_are_made() -> None:
    rows = [line.split() for line in (FOLDER / "sysusers.d" / "gatewayd.conf").read_text().splitlines()]
    made = {row[1] for row in rows if row[0] in ("u", "g")}
    control = directives(FOLDER / "gatewayd-control.socket")
    used = [*SERVICE["User"], *SERVICE["Group"], *control["SocketUser"], *control["SocketGroup"]]
    assert set(used) == made


@pytest.mark.real("systemd-sysusers")
def test_users_and_groups_can_be_made(tmp_path: Path) -> None:
    said = run(
        *("systemd-sysusers", f"--root={tmp_path}", "--dry-run"),
        str(FOLDER / "sysusers.d" / "gatewayd.conf"),
    )
    assert "Creating user 'gatewayd'" in said
    assert "Creating group 'gatewayd-admin'" in said


def test_the_runtime_directory_is_made_for_the_daemons_user() -> None:
    text = (FOLDER / "tmpfiles.d" / "gatewayd.conf").read_text()
    rows = {row[1]: row for row in map(str.split, text.splitlines()) if row[0] == "d"}
    assert all(len(row) == 6 for row in rows.values())
    mode, owner = SERVICE["RuntimeDirectoryMode"][0], SERVICE["User"][0]
    assert rows["/run/gatewayd"][2:4] == [mode, owner]
    assert rows["/etc/credstore"][2:5] == ["0700", "root", "root"]


INGEST = directives(FOLDER / "gatewayd-ingest@.service")


def test_the_ingestion_calls_a_command_that_there_is() -> None:
    [line] = INGEST["ExecStart"]
    words = line.split()
    command = typer.main.get_command(app).commands[words[1]]
    assert words[0] == "/usr/bin/gatewayctl"
    assert words[2:] == ["${DIRECTORY}", "--collection", "${COLLECTION}", "$OPTIONS"]
    assert "--collection" in {name for item in command.params for name in item.opts}
    # Options may be missing in the file, the others may not.
    assert INGEST["Environment"] == ["OPTIONS="]
    assert INGEST["EnvironmentFile"] == ["/etc/gatewayd/ingest/%i.conf"]


def test_an_ingestion_that_is_to_be_tried_later_has_not_failed() -> None:
    codes = {int(code) for code in INGEST["SuccessExitStatus"][0].split()}
    assert codes == {TRY_LATER, INTERRUPTED}
    assert "Restart" not in INGEST
    assert directives(FOLDER / "gatewayd-ingest@.timer")["Persistent"] == ["yes"]


def test_an_ingestion_may_do_no_more_than_the_daemon() -> None:
    # Its user is the daemon's: at the end of the unit its shared memory must stay.
    own = {"RemoveIPC", "ProtectHome", "RestrictAddressFamilies"}
    text = (FOLDER / "gatewayd.service").read_text()
    hardening = directives_of(text[text.index("NoNewPrivileges") :])
    # The daemon sets the priority of its children, and these confine themselves.
    calls = [row for row in hardening.pop("SystemCallFilter") if row not in ("setpriority", LANDLOCK)]
    assert INGEST["SystemCallFilter"] == calls
    for name in set(hardening) - own - {"WantedBy", "Also"}:
        assert INGEST[name] == hardening[name], name
    assert INGEST["RestrictAddressFamilies"] == ["AF_UNIX"]
    assert INGEST["ProtectHome"] == ["read-only"]
    assert INGEST["User"] == SERVICE["User"]
