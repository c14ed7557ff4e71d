"""Commands of the service manager, as a shell takes them; tests/faults runs them under a systemd."""

import subprocess
import sys
from pathlib import Path

import pytest

from gatewayd.doctor import service_commands


def test_a_drop_in_is_written_as_the_unit_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_commands, "DROP_INS", str(tmp_path / "d"))
    monkeypatch.setattr(service_commands, "RESTART", "true")
    command = service_commands.drop_in("a", "Environment=A=$(echo 1)")
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=30)
    made = tmp_path / "d" / "zz-a.conf"
    assert (made.read_text(), made.stat().st_mode & 0o777) == ("[Service]\nEnvironment=A=1\n", 0o600)


def test_an_upgrade_is_one_of_the_environment_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/a venv/bin/python")
    assert service_commands.upgrade() == "'/opt/a venv/bin/python' -m pip install --upgrade gatewayd"
    monkeypatch.setattr(sys, "prefix", "/usr/lib/gatewayd")
    assert service_commands.upgrade() == "apt-get install --only-upgrade --yes gatewayd"


@pytest.mark.parametrize(
    ("host", "options"),
    [("localhost", ""), ("/run/postgresql", ""), ("db.example.org", "--host=db.example.org ")],
)
def test_postgresql_is_started_where_it_runs(host: str, options: str) -> None:
    assert service_commands.start_postgres(host) == f"systemctl {options}start postgresql"


def test_the_model_is_fetched_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/v/python")
    plain = service_commands.fetch_model(is_off=False, lacks_engine=False)
    assert plain == f"gatewayd --fetch-model && {service_commands.RESTART}"
    without = service_commands.fetch_model(is_off=True, lacks_engine=True)
    engine, fetching, _ = without.split(" && ", 2)
    assert engine == "/v/python -m pip install 'gatewayd[local]'"
    assert fetching == "ENABLE_BUILTIN_MODEL=auto gatewayd --fetch-model"
    assert "Environment=ENABLE_BUILTIN_MODEL=auto" in without
