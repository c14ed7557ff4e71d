"""Commands while PostgreSQL is away: each ends with its data or a clear error, and nothing is lost."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gatewayd.storage.engine.location import parse
from tests.fakes.daemons.chat_site import AUTHS, House, wait_until
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, openai_stream, sse
from tests.fakes.storage.postgres import Postgres
from tests.faults.test_outages import SECONDS, hanging, house_of, server, shut_down

__all__ = ["server"]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

WITHOUT_DATABASE = ("metrics", "top --once", "health", "doctor")
"""Commands that have something to tell without the database; `health` and `doctor` tell that it is away."""

WITH_DATABASE = (
    "usage report",
    "audit search",
    "audit verify",
    "state export",
    "user list",
)
MOST_SECONDS = 90.0
"""Maximum time of a command on a loaded machine; those that wait for the database have 30 seconds."""


def run_all(house: House, commands: tuple[str, ...]) -> dict[str, CompletedProcess[str]]:
    """Run commands at the same time; one that hangs raises TimeoutExpired."""

    def run(command: str) -> CompletedProcess[str]:
        return house.daemon.run_ctl(*command.split(), seconds=MOST_SECONDS)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(commands, pool.map(run, commands), strict=True))


def refuse_sign_in(house: House) -> int:
    form = {"email": "ann@example.org", "password": "wrong"}
    return house.call("POST", f"{AUTHS}/signin", form)[0]


def requests(house: House) -> int:
    done = house.daemon.run_ctl("usage", "report", "-o", "json")
    assert done.returncode == 0, done.stderr
    return sum(line["requests"] for line in json.loads(done.stdout))


def refusals(house: House) -> int:
    done = house.daemon.run_ctl("audit", "search", "--action", "sign-in refused", "-o", "json")
    assert done.returncode == 0, done.stderr
    return len(json.loads(done.stdout))


def check_in_outage(house: House) -> bool:
    """Run every command without the database; return whether a user could be made."""
    for command, done in run_all(house, WITHOUT_DATABASE).items():
        assert done.returncode in (0, 1, 2), (command, done.stderr)
        assert done.stdout, (command, done.stderr)
        assert "Traceback" not in done.stderr
    for command, done in run_all(house, WITH_DATABASE).items():
        if done.returncode == 0:
            assert done.stdout, command
            continue
        assert "cannot" in done.stderr, (command, done.stderr)
        assert "database" in done.stderr, (command, done.stderr)
        assert "Traceback" not in done.stderr
    words = ["user", "create", "--email", "eve@example.org", "--generate"]
    made = house.daemon.run_ctl(*words, seconds=MOST_SECONDS)
    assert made.returncode == 0 or "database" in made.stderr, made.stderr
    return made.returncode == 0


def test_commands_without_postgresql(tmp_path: Path, server: Postgres) -> None:
    with house_of(tmp_path, DATABASE_URL=server.create_database()) as house:
        house.provider.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE, *openai_stream(["b"])]))
        turn, _ = house.ask()
        house.provider.wait_silent()
        assert refuse_sign_in(house) == 400
        before = requests(house)
        with shut_down(server):
            house.provider.release()
            refuse_sign_in(house)
            is_made = check_in_outage(house)
        wait_until(lambda: house.call("GET", "/readyz")[0] == 200, "the database", SECONDS)
        for command, done in run_all(house, (*WITHOUT_DATABASE, *WITH_DATABASE)).items():
            assert done.returncode in ((0, 1, 2) if command == "doctor" else (0,)), (command, done.stderr)
        wait_until(lambda: requests(house) == before + 1, "the usage of the outage", SECONDS)
        assert house.finished(turn)["content"] == "ab"
        assert refusals(house) >= 1
        made = house.daemon.run_ctl("user", "show", "eve@example.org")
        assert (made.returncode == 0) is is_made
        log = list(house.daemon.log)
        errors = [line for line in log if " error " in line and "the audit log cannot be written" not in line]
        assert errors == []
        assert "Traceback" not in "".join(log)


def test_commands_on_a_postgresql_that_stands_still(tmp_path: Path, server: Postgres) -> None:
    """It takes what is sent and answers nothing: no command waits for it longer than the daemon does."""
    url = server.create_database()
    address = parse(url).address
    with house_of(tmp_path, DATABASE_URL=url) as house:
        offline = {"DATA_DIR": str(house.daemon.state), "DATABASE_URL": url}

        def back_up() -> CompletedProcess[str]:
            return house.daemon.run_ctl("backup", "create", env=offline, seconds=MOST_SECONDS)

        before = requests(house)
        with hanging(server):
            is_made = check_in_outage(house)
            found = json.loads(house.daemon.run_ctl("doctor", "-o", "json", seconds=MOST_SECONDS).stdout)
            assert "database-unreachable" in {each["code"] for each in found}
            for refused in (house.daemon.run_ctl("user", "list", seconds=MOST_SECONDS), back_up()):
                assert refused.returncode == 1, refused
                assert address in refused.stderr
                assert "Traceback" not in refused.stderr
        wait_until(lambda: house.call("GET", "/readyz")[0] == 200, "the database", SECONDS)
        for command, done in run_all(house, (*WITHOUT_DATABASE, *WITH_DATABASE)).items():
            assert done.returncode in ((0, 1, 2) if command == "doctor" else (0,)), (command, done.stderr)
        assert requests(house) == before
        assert (house.daemon.run_ctl("user", "show", "eve@example.org").returncode == 0) is is_made
        made = back_up()
        assert made.returncode == 0, made.stderr
