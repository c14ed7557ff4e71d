"""What is left of an answer when the daemon dies, or is stopped, while it is given."""

import http.client
import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.chat_site import CHATS, COMPLETIONS, House, Person, Turn, living, wait_until
from tests.fakes.daemons.daemon import Daemon
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, openai_chunk, openai_stream, sse
from tests.fakes.storage.postgres import Postgres

WORDS = [sse(openai_chunk(content=word)) for word in ("Hello", " there")]
REST = b"".join(openai_stream(["!"]))
RESTARTED = "the gateway was restarted while this was answered"
STOPPED = "the gateway was stopped while this was answered"
MANY = 60

People = Mapping[str, Person]


@dataclass
class Seed:
    """A gateway that has lived once and is to be copied, its people, and a provider for all that follow."""

    folder: Path
    people: People
    provider: Provider

    def grown(self, folder: Path) -> Path:
        """Copy the state into a folder."""
        shutil.copytree(self.folder / "s", folder / "s", ignore=shutil.ignore_patterns("*.sock"))
        return folder


@pytest.fixture(scope="module")
def provider() -> Any:
    with background_upstream() as made:
        yield made


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Seed:
    folder = tmp_path_factory.mktemp("h")
    with living(folder, provider) as house:
        assert house.daemon.stop() == 0
        return Seed(folder, house.people, provider)


def begin(house: House) -> Turn:
    """Begin an answer that the provider does not end."""
    house.provider.script(Reply(steps=[*WORDS, SILENCE, REST]))
    turn, _ = house.ask()
    house.provider.wait_silent()
    return turn


def kill(daemon: Daemon) -> None:
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL


def kill_amid(daemon: Daemon, begun: Sequence[Turn]) -> None:
    """Kill a daemon once a third of the many answers has begun, while others begin."""
    wait_until(lambda: len(begun) >= MANY // 3, "answers that begin")
    daemon.process.kill()


def after_a_kill(
    folder: Path, provider: Provider, people: People | None, *, kept: str, **settings: str
) -> dict[str, Any]:
    """Kill a daemon that answers, once its chat has what it should; return the answer in the next life."""
    with living(folder, provider, people, **settings) as house:
        turn = begin(house)
        told = {"type": "status", "data": {"description": "by event", "done": True}}
        house.ok("POST", f"{CHATS}/{turn.chat_id}/messages/{turn.answer}/event", told)
        wait_until(lambda: house.message(turn)["content"] == kept, "the content")
        assert house.message(turn)["done"] is False
        kill(house.daemon)
        people = house.people
    provider.release()
    with living(folder, provider, people, **settings) as house:
        message = house.message(turn)
        assert house.tasks_of(turn) == []
        # The next answer to it is like any other.
        provider.script()
        house.start(turn)
        again = house.finished(turn)
        assert (again["content"], again["done"], again.get("error")) == ("Hello from m", True, None)
        house.assert_well()
        return message


@pytest.mark.parametrize(
    ("saved", "kept"), [("true", "Hello there"), ("false", "")], ids=["often", "at the end"]
)
def test_a_killed_daemon_leaves_what_was_saved(tmp_path: Path, seed: Seed, saved: str, kept: str) -> None:
    message = after_a_kill(
        seed.grown(tmp_path), seed.provider, seed.people, kept=kept, ENABLE_REALTIME_CHAT_SAVE=saved
    )
    assert (message["content"], message["done"]) == (kept, True)
    assert message["error"] == {"content": RESTARTED}
    assert [item["description"] for item in message["statusHistory"]] == ["by event"]


def test_a_killed_daemon_on_postgresql(tmp_path: Path, postgres: Postgres, provider: Provider) -> None:
    settings = {"DATABASE_URL": postgres.migrated_database(), "ENABLE_REALTIME_CHAT_SAVE": "true"}
    message = after_a_kill(tmp_path, provider, None, kept="Hello there", **settings)
    assert (message["content"], message["done"]) == ("Hello there", True)
    assert message["error"] == {"content": RESTARTED}


def test_a_stop_lets_answers_end(tmp_path: Path, seed: Seed) -> None:
    folder = seed.grown(tmp_path)
    with living(folder, seed.provider, seed.people) as house:
        with house.listen() as listener:
            turn = begin(house)
            listener.wait_type("chat:completion", turn.chat_id)
            house.daemon.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_reachable(house), "the stop")
            assert house.daemon.process.poll() is None
            seed.provider.release()
            # Who listens hears the end.
            heard = listener.wait_idle(turn.chat_id)
            assert [one.payload for one in heard if one.type == "chat:completion"][-1]["done"] is True
            listener.wait_over()
        assert house.daemon.process.wait(30) == 0
        assert "Traceback" not in "".join(house.daemon.log)
    with living(folder, seed.provider, seed.people) as house:
        message = house.message(turn)
        assert (message["content"], message["done"], message.get("error")) == ("Hello there!", True, None)


def test_an_answer_that_is_asked_for_during_a_stop_ends_too(tmp_path: Path, seed: Seed) -> None:
    folder = seed.grown(tmp_path)
    with living(folder, seed.provider, seed.people) as house:
        seed.provider.script(Reply(steps=[*WORDS, SILENCE, REST]))
        turn = house.begin()
        asked = json.dumps(house.body(turn, session_id="api-1")).encode()
        upload = form(file_part(b"z" * 2_000_000))
        with (
            begun(house, COMPLETIONS, "application/json", asked) as chat,
            begun(house, "/api/v1/files/?process=false", FORM, upload) as file,
        ):
            house.daemon.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_reachable(house), "the stop")
            told = file(upload)
            assert chat(asked)["status"] is True
        seed.provider.wait_silent()
        # Nothing that comes now changes the stop.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            house.daemon.process.send_signal(number)
        assert house.daemon.process.poll() is None
        seed.provider.release()
        assert house.daemon.process.wait(30) == 0
        assert "Traceback" not in "".join(house.daemon.log)
    with living(folder, seed.provider, seed.people) as house:
        message = house.message(turn)
        assert (message["content"], message["done"], message.get("error")) == ("Hello there!", True, None)
        assert house.ok("GET", f"/api/v1/files/{told['id']}")["meta"]["size"] == 2_000_000


@contextmanager
def begun(house: House, path: str, kind: str, body: bytes) -> Iterator[Callable[[bytes], Any]]:
    """Send the head and the first half of a body; give what sends the rest and returns the answer."""
    with closing(
        http.client.HTTPConnection(house.daemon.base_url.removeprefix("http://"), timeout=30)
    ) as line:
        line.putrequest("POST", path)
        headers = {"Authorization": f"Bearer {house.ann.token}", "Content-Type": kind}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            line.putheader(name, value)
        half = len(body) // 2
        line.endheaders(body[:half])

        def finish(body: bytes) -> Any:
            line.send(body[half:])
            reply = line.getresponse()
            assert reply.headers["Connection"] == "close"
            assert reply.status == 200
            return json.loads(reply.read())

        yield finish


def is_reachable(house: House) -> bool:
    try:
        return house.daemon.call("GET", "/livez")[0] == 200
    except OSError:
        return False


def test_a_stop_does_not_wait_for_ever_and_says_so_in_the_answer(tmp_path: Path, seed: Seed) -> None:
    folder = seed.grown(tmp_path)
    with living(folder, seed.provider, seed.people, DRAIN_TIMEOUT="0.5") as house:
        turn = begin(house)
        pipe, _ = house.ask("endless")
        house.wait_begun(pipe)
        assert house.daemon.stop() == 0
        house.wait_ended(pipe)
        log = "".join(house.daemon.log)
        assert "Traceback" not in log
        assert "stopping with answers unfinished in_flight=0 tasks=2" in log
    seed.provider.release()
    with living(folder, seed.provider, seed.people) as house:
        for each, content in ((turn, "Hello there"), (pipe, "one two three")):
            message = house.message(each)
            assert (message["content"], message["done"]) == (content, True)
            assert message["error"] == {"content": STOPPED}


def test_a_kill_while_many_answers_are_given(tmp_path: Path, seed: Seed) -> None:
    folder = seed.grown(tmp_path)
    with living(folder, seed.provider, seed.people) as house:
        seed.provider.script()
        early, _ = house.ask()
        before = house.finished(early)
        turns = [house.begin("echo", " ".join([f"text {number}"] * 40)) for number in range(MANY)]
        begun: list[Turn] = []
        killed = threading.Thread(target=kill_amid, args=(house.daemon, begun))
        killed.start()
        for turn in turns:
            try:
                house.start(turn, "echo")
            except OSError:
                break
            begun.append(turn)
        killed.join()
        house.daemon.process.wait(20)
    with living(folder, seed.provider, seed.people) as house:
        assert house.message(early) == before
        for turn in begun:
            message = house.message(turn)
            assert message["done"] is True
            is_whole = message["content"] == turn.text and "error" not in message
            assert is_whole or message["error"] == {"content": RESTARTED}, message
        house.assert_well()
