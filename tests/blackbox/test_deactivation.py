"""An account that is put out while it has streams and answers open loses all of them within a second.

In every dialect, by an identity provider, on the control socket and by another administrator; what others
have open goes on.
"""

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.failing_provider_site import configuration
from tests.fakes.daemons.role_site import AUTHS, GROUPS, PASSWORD, SCIM_TOKEN, USERS
from tests.fakes.daemons.role_site import SETTINGS as SCIM
from tests.fakes.http.raw_http import Reply, send
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.model_requests import STREAMING, WHOLE, Case, begun, stream_of
from tests.fakes.providers.questions import CHAT, Question, texts
from tests.fakes.providers.upstream import SILENCE
from tests.fakes.providers.upstream import Reply as Scripted

SECONDS = 1.0
"""How long anything that an account had open may still take."""

SETTINGS = {**SCIM, "ENABLE_API_KEYS": "true", "BYPASS_MODEL_ACCESS_CONTROL": "true"}
SCIM_USERS = "/api/v1/scim/v2/Users"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
CASES = list(STREAMING.values())
FEW = [STREAMING[name] for name in ("chat of a hosted model", "messages of a native model")]


class Left(Everything):
    """A provider for all routes that counts who left it in the middle of an answer."""

    def __init__(self, models: Sequence[str] = ("m",)) -> None:
        super().__init__(models)
        self.left = threading.Semaphore(0)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super()._handle(request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.release()
            raise


@dataclass
class Person:
    """An account with both of its credentials."""

    id: str
    email: str
    session: str
    key: str = ""


@dataclass
class Asked:
    """A request whose answer is not over."""

    question: Question
    connection: http.client.HTTPConnection
    answer: http.client.HTTPResponse | None = None
    got: bytes = b""

    def limit(self, seconds: float) -> None:
        """Let every read from now on take at most so long."""
        assert self.connection.sock is not None or self.answer is not None
        if self.connection.sock is not None:
            self.connection.sock.settimeout(seconds)

    def rest(self) -> Reply:
        """Read to the end and return the whole reply."""
        answer = self.answer or self.connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, headers, self.got + answer.read())


@dataclass
class Site:
    """A gateway over a silent provider, and its first administrator."""

    daemon: Daemon
    provider: Provider
    admin: str
    group: str
    numbers: Iterator[int]

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        signed = {"Authorization": f"Bearer {self.admin if token is None else token}"}
        return self.daemon.call(method, path, body, signed)

    def ok(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        status, answer = self.call(method, path, body, token)
        assert status in {200, 201, 204}, (path, answer)
        return answer

    def scim(self, method: str, user_id: str, body: Any = None) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        signed = {"Authorization": f"Bearer {SCIM_TOKEN}"}
        return send(self.daemon.base_url, method, f"{SCIM_USERS}/{user_id}", data, signed)

    def add(self) -> Person:
        """Add an account with a key."""
        email = f"u{next(self.numbers)}@example.org"
        form = {"name": "N", "email": email, "password": PASSWORD, "role": "user"}
        made = self.ok("POST", f"{AUTHS}/add", form)
        self.ok("POST", f"{GROUPS}/id/{self.group}/users/add", {"user_ids": [made["id"]]})
        key = self.ok("POST", f"{AUTHS}/api_key", {}, made["token"])["api_key"]
        return Person(made["id"], email, made["token"], key)

    @contextlib.contextmanager
    def asking(self, credential: str, question: Question, model: str, *, stream: bool) -> Iterator[Asked]:
        """Ask a patient provider."""
        connection = http.client.HTTPConnection(urlsplit(self.daemon.base_url).netloc, timeout=30)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
            body = question.asked(f"p{model}", stream=stream)
            connection.request("POST", question.path, body, headers)
            yield Asked(question, connection)

    @contextlib.contextmanager
    def streaming(self, credential: str, question: Question, model: str) -> Iterator[Asked]:
        """Open a stream at a provider that says "one" and falls silent."""
        first = begun(question, model)
        whole = b"".join(stream_of(question, model, ["one"]))
        self.provider.script(Scripted(steps=[first, SILENCE, whole.removeprefix(first)]))
        with self.asking(credential, question, model, stream=True) as asked:
            asked.answer = asked.connection.getresponse()
            assert asked.answer.status == 200
            while b"one" not in asked.got:
                part = asked.answer.read1(65536)
                assert part, asked.got
                asked.got += part
            yield asked

    @contextlib.contextmanager
    def waiting(self, credential: str, question: Question, model: str) -> Iterator[Asked]:
        """Ask for a whole answer at a provider that is silent."""
        self.provider.script(Scripted(before=SILENCE))
        with self.asking(credential, question, model, stream=False) as asked:
            self.provider.wait_silent()
            yield asked

    @contextlib.contextmanager
    def open_all(self, person: Person, cases: Sequence[Case], *, stream: bool) -> Iterator[list[Asked]]:
        """Have a request of each case open, by key and by session in turns."""
        ask = self.streaming if stream else self.waiting
        with contextlib.ExitStack() as stack:
            credentials = [person.key, person.session] * len(cases)
            yield [
                stack.enter_context(ask(credential, question, model))
                for credential, (question, model) in zip(credentials, cases, strict=False)
            ]

    def assert_left(self, count: int) -> None:
        """Check that so many connections to the provider are closed in time, and no more."""
        left = cast("Left", self.provider.fake).left
        deadline = time.monotonic() + SECONDS
        for number in range(count):
            assert left.acquire(timeout=max(deadline - time.monotonic(), 0.01)), f"{number} of {count}"
        assert not left.acquire(blocking=False)


def statuses(site: Site, person: Person) -> dict[str, int]:
    """Return how each way to use the account fares."""
    ways = {
        "key": {"Authorization": f"Bearer {person.key}"},
        "session": {"Authorization": f"Bearer {person.session}"},
        "x-api-key": {"x-api-key": person.key},
        "cookie": {"Cookie": f"token={person.session}"},
    }
    url = site.daemon.base_url
    return {way: send(url, "GET", "/v1/models", None, headers).status for way, headers in ways.items()}


Deed = Callable[[Site, Person], None]


def by_scim_patch(site: Site, person: Person) -> None:
    operation = {"op": "Replace", "path": "active", "value": "False"}
    reply = site.scim("PATCH", person.id, {"schemas": [PATCH_OP], "Operations": [operation]})
    assert (reply.status, reply.json["active"]) == (200, False)


def by_scim_put(site: Site, person: Person) -> None:
    reply = site.scim("PUT", person.id, {"userName": person.email, "active": False})
    assert (reply.status, reply.json["active"]) == (200, False)


def by_scim_delete(site: Site, person: Person) -> None:
    assert site.scim("DELETE", person.id).status == 204


def by_operator(*command: str) -> Deed:
    def act(site: Site, person: Person) -> None:
        done = site.daemon.run_ctl("user", command[0], person.id, *command[1:])
        assert done.returncode == 0, done.stderr

    return act


def by_administrator_made_pending(site: Site, person: Person) -> None:
    site.ok("POST", f"{USERS}/{person.id}/update", {"role": "pending"})


def by_administrator_removed(site: Site, person: Person) -> None:
    site.ok("DELETE", f"{USERS}/{person.id}")


DEACTIVATIONS: dict[str, Deed] = {
    "SCIM PATCH": by_scim_patch,
    "SCIM PUT": by_scim_put,
    "SCIM DELETE": by_scim_delete,
    "gatewayctl user deactivate": by_operator("deactivate"),
}
PUT_OFF: dict[str, Deed] = {
    "gatewayctl user change --role pending": by_operator("change", "--role", "pending"),
    "another administrator": by_administrator_made_pending,
}
"""A pending account keeps its key, which opens no model."""
REMOVALS: dict[str, Deed] = {
    "gatewayctl user remove": by_operator("remove", "--yes"),
    "another administrator removes": by_administrator_removed,
}
PENDING = {"key": 403, "session": 401, "x-api-key": 403, "cookie": 401}
EVERY = {**DEACTIVATIONS, **PUT_OFF, **REMOVALS}


@contextlib.contextmanager
def opened(folder: Path, **settings: str) -> Iterator[Site]:
    with background_upstream(kind=Left) as provider:
        file = folder / "gatewayd.toml"
        file.touch(0o600)
        file.write_text(configuration(provider.url))
        with running_daemon(folder / "state", "-f", str(file), **{**SETTINGS, **settings}) as daemon:
            form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
            admin = daemon.call("POST", f"{AUTHS}/signup", form)[1]["token"]
            site = Site(daemon, provider, admin, "", count())
            group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
            site.group = site.ok("POST", f"{GROUPS}/create", group)["id"]
            yield site
            assert daemon.process.poll() is None
            log = "".join(daemon.log)
            assert "Traceback" not in log
            assert " error " not in log
            assert SCIM_TOKEN not in log


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {}
    if request.param == "postgresql":
        settings["DATABASE_URL"] = request.getfixturevalue("postgres").migrated_database()
    with opened(tmp_path_factory.mktemp("d"), **settings) as made:
        yield made


@pytest.fixture(autouse=True)
def released(site: Site) -> Iterator[None]:
    """Begin each test with a provider of which nobody has left."""
    left = cast("Left", site.provider.fake).left
    while left.acquire(blocking=False):
        pass
    yield
    site.provider.release()


def assert_cut(asked: Asked) -> None:
    """Check that a stream is cut in time, so that nobody takes it for whole."""
    asked.limit(SECONDS)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        asked.rest()


def assert_refused(asked: Asked) -> None:
    """Check that an answer that was waited for is a refusal in its dialect, in time."""
    asked.limit(SECONDS)
    reply = asked.rest()
    assert reply.status == 401, reply
    assert "deactivated" in str(asked.question.dialect.failure(reply.json))


@pytest.mark.parametrize("deed", EVERY.values(), ids=EVERY)
def test_open_streams_end_and_those_of_others_go_on(site: Site, deed: Deed) -> None:
    ann, bob = site.add(), site.add()
    with site.open_all(bob, FEW, stream=True) as his, site.open_all(ann, CASES, stream=True) as hers:
        deed(site, ann)
        site.assert_left(len(hers))
        for asked in hers:
            assert_cut(asked)
        after = statuses(site, ann)
        assert set(after.values()) == {401} or (deed in PUT_OFF.values() and after == PENDING), after
        assert set(statuses(site, bob).values()) == {200}
        site.provider.release()
        for asked in his:
            reply = asked.rest()
            assert (reply.status, texts(asked.question.dialect, reply)) == (200, "one")


@pytest.mark.parametrize("deed", EVERY.values(), ids=EVERY)
def test_answers_that_are_waited_for_are_refused(site: Site, deed: Deed) -> None:
    ann = site.add()
    with site.open_all(ann, list(WHOLE.values()), stream=False) as asked:
        deed(site, ann)
        site.assert_left(len(asked))
        for each in asked:
            assert_refused(each)


@pytest.mark.parametrize("deed", DEACTIVATIONS.values(), ids=DEACTIVATIONS)
def test_keys_come_back_with_the_account_and_sessions_do_not(site: Site, deed: Deed) -> None:
    ann = site.add()
    deed(site, ann)
    assert set(statuses(site, ann).values()) == {401}
    form = {"email": ann.email, "password": PASSWORD}
    assert site.call("POST", f"{AUTHS}/signin", form, "")[0] in {400, 401, 403}
    operation = {"op": "replace", "value": {"active": True}}
    reply = site.scim("PATCH", ann.id, {"schemas": [PATCH_OP], "Operations": [operation]})
    assert (reply.status, reply.json["active"]) == (200, True)
    assert statuses(site, ann) == {"key": 200, "session": 401, "x-api-key": 200, "cookie": 401}
    fresh = site.call("POST", f"{AUTHS}/signin", form, "")
    assert fresh[0] == 200
    ann.session = fresh[1]["token"]
    assert set(statuses(site, ann).values()) == {200}
    site.provider.script()
    with site.asking(ann.key, CHAT, "o.m", stream=False) as asked:
        assert asked.rest().status == 200


def test_a_change_that_puts_nobody_out_cuts_nothing(site: Site) -> None:
    ann = site.add()
    with site.open_all(ann, FEW, stream=True) as hers:
        body = {"Operations": [{"op": "replace", "value": {"displayName": "New", "active": True}}]}
        assert site.scim("PATCH", ann.id, body).status == 200
        site.ok("POST", f"{USERS}/{ann.id}/update", {"name": "Newer"})
        site.provider.release()
        for asked in hers:
            reply = asked.rest()
            assert (reply.status, texts(asked.question.dialect, reply)) == (200, "one")


def test_who_comes_in_while_the_account_is_put_out_does_not_stay(site: Site) -> None:
    for _ in range(5):
        ann, stop = site.add(), threading.Event()
        first = begun(CHAT, "o.m")
        site.provider.script(*[Scripted(steps=[first, SILENCE])] * 2000)

        def press(person: Person = ann, stop: threading.Event = stop) -> list[str]:
            """Open streams one after another, and tell how each of the last ones ended."""
            ends = []
            while not stop.is_set():
                with site.asking(person.key, CHAT, "o.m", stream=True) as asked:
                    asked.limit(10)
                    answer = asked.connection.getresponse()
                    if answer.status != 200:
                        return [*ends, str(answer.status)]
                    with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
                        answer.read()
                        return [*ends, "whole"]
                    ends.append("cut")
            return ends

        with ThreadPoolExecutor(8) as pool:
            futures: list[Future[list[str]]] = [pool.submit(press) for _ in range(8)]
            by_scim_patch(site, ann)
            ended = [future.result(timeout=10) for future in futures]
            stop.set()
        assert all(ends[-1] == "401" for ends in ended), ended
