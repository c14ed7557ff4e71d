"""The doctor over the state of a stopped gateway: what it advises mends, and nothing else is changed."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayd.assembly.upkeep import doctor as module
from gatewayd.assembly.upkeep.doctor import examine_stopped
from gatewayd.doctor import service_commands
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.settings import load
from tests.fakes.storage.migrated import migrated_copy

SHORT = "é" * 16
"""Long enough in bytes, which the settings count, and too short in characters."""


async def codes_of(file: Path | None, environment: dict[str, str]) -> dict[str, str]:
    """Return the command of each finding about secrets."""
    found = await examine_stopped(load(file, environment))
    return {each.code: each.command for each in found if each.code.startswith("secret-")}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    migrated_copy(folder)
    return folder


async def test_a_short_secret_of_a_configuration_file_is_replaced_in_its_line(
    tmp_path: Path, state: Path
) -> None:
    file = tmp_path / "a gatewayd.toml"
    file.write_text(f'webui_name = "x"\nwebui_secret_key = "{SHORT}"  # mine\nport = 1234\n')
    file.chmod(0o600)
    environment = {"DATA_DIR": str(state)}
    command = (await codes_of(file, environment))["secret-short"]
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=30)
    assert await codes_of(file, environment) == {}
    settings = load(file, environment)
    assert settings.port == 1234
    assert len(settings.webui_secret_key.get_secret_value()) == 64


async def test_a_short_secret_of_a_file_that_a_variable_names(tmp_path: Path, state: Path) -> None:
    file = tmp_path / "key"
    file.write_text(SHORT)
    file.chmod(0o600)
    environment = {"DATA_DIR": str(state), "WEBUI_SECRET_KEY_FILE": str(file)}
    command = (await codes_of(None, environment))["secret-short"]
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=30)
    assert await codes_of(None, environment) == {}


async def test_advice_for_secrets_of_the_service_manager(tmp_path: Path, state: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "webui-secret-key").write_text(SHORT)
    by_unit = {"DATA_DIR": str(state), "CREDENTIALS_DIRECTORY": str(credentials)}
    command = (await codes_of(None, by_unit))["secret-short"]
    assert command == "openssl rand -hex 32 > /etc/credstore/gatewayd.webui-secret-key"
    by_variable = {"DATA_DIR": str(state), "WEBUI_SECRET_KEY": SHORT}
    command = (await codes_of(None, by_variable))["secret-short"]
    secret = "Environment=WEBUI_SECRET_KEY=$(openssl rand -hex 32)"
    assert command == service_commands.drop_in("webui-secret-key", secret)


async def test_a_small_limit_of_a_configuration_file_is_raised_in_its_line(
    tmp_path: Path, state: Path
) -> None:
    file = tmp_path / "a gatewayd.toml"
    file.write_text("port = 1234\nrag_file_max_size = 5\n")
    file.chmod(0o600)
    with closing(sqlite3.connect(state / "gatewayd.db")) as database, database:
        columns = ("id", "user_id", "name", "name_key", "digest", "checksum", "status", "data")
        names = ", ".join(f'"{name}"' for name in columns)
        database.execute(
            f"INSERT INTO files ({names}, size, characters, chunks, updated_at, created_at)"
            f" VALUES ('f1', 'u1', 'n', 'n', 'd', 'c', 'completed', '{{}}', ?, 0, 0, 1, 1)",
            ((9 << 20) + 1,),
        )

    async def commands() -> list[str]:
        found = await examine_stopped(load(file, {"DATA_DIR": str(state)}))
        return [each.command for each in found if each.code == "limit-small"]

    [command] = await commands()
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=30)
    assert await commands() == []
    settings = load(file, {"DATA_DIR": str(state)})
    assert (settings.port, int(settings.rag_file_max_size)) == (1234, 10 << 20)


class OnlyFunctions:
    """The catalogue of a gateway without a provider."""

    def __init__(self, models: int) -> None:
        self.models = models

    async def list_all(self) -> None:
        """Ask nobody."""

    def source_states(self) -> list[dict[str, object]]:
        return [{"name": "functions", "models": self.models, "problem": None}]


@pytest.mark.parametrize(("switch", "models", "found"), [("auto", 0, 1), ("false", 0, 1), ("auto", 1, 0)])
async def test_functions_without_models_are_no_provider(switch: str, models: int, found: int) -> None:
    settings = load(None, {"ENABLE_BUILTIN_MODEL": switch})
    services: Any = SimpleNamespace(catalog=OnlyFunctions(models), settings=settings)
    findings = await module._sources(services)
    assert [each.code for each in findings] == ["provider-none"] * found
    is_switched = [each.command.count("ENABLE_BUILTIN_MODEL=auto") for each in findings]
    assert is_switched == [2 * (switch == "false")] * found


def test_a_running_daemon_is_restarted_for_a_value_that_it_reads_at_its_start() -> None:
    command = f"x && {service_commands.RESTART}"
    for code, given, expected in (
        ("secret-short", "x", command),
        ("limit-small", command, command),
        ("state-open", "x", "x"),
    ):
        assert module._restarted(DoctorFinding(code, "s", given)).command == expected
