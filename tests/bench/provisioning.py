"""SCIM at size: `python -m tests.bench.provisioning` from the root of the repository.

Fills a database of each kind with accounts, groups and one large group, starts a gateway over it, and sends
what identity providers send, one request after another on one connection. Times are those of the client.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from gatewayd.storage.engine.location import parse
from tests.bench.population import Population, email_of, external_id_of, populate
from tests.bench.report import quantile, shown, table
from tests.bench.targets import started
from tests.fakes.storage.postgres import start_postgres

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "provisioning-benchmark-token-of-enough-length"
BASE: Final = "/api/v1/scim/v2"
POOL_SIZE: Final = 8
ENGINES: Final = ("sqlite", "postgresql")

CONFIGURATION: Final = """
data_dir = "{state}"
control_socket = "{state}/control.sock"
database_url = "{url}"
host = "127.0.0.1"
enable_builtin_model = false
global_log_level = "WARNING"
scim_enabled = true
scim_auth_provider = "bench"
scim_token = "{token}"
"""


@dataclass(frozen=True)
class Goal:
    """Milliseconds to reach on SQLite and on PostgreSQL; None when nothing was set."""

    p50: tuple[float, float] | None = None
    p99: tuple[float, float] | None = None


GOALS: Final = {
    "userName eq": Goal((3, 3), (12, 12)),
    "externalId eq": Goal((3, 3), (12, 12)),
    "list of 100 at 95 %": Goal((10, 50)),
    "displayName co": Goal((25, 40)),
    "PATCH group +1 of the largest": Goal((6, 6)),
    "POST user": Goal((10, 10)),
}


@dataclass
class Site:
    """One running gateway, and what the requests are made of."""

    port: int
    size: Population
    groups: Sequence[str]
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    users: list[str] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the answer; anything but success ends the run."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/scim+json"}
        self.connection.request(method, BASE + path, data, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {text[:500]!r}")
        return json.loads(text) if text else None

    def number(self) -> int:
        """Return a user, by number."""
        return self.chance.randrange(self.size.users)

    def find(self, **query: Any) -> Any:
        """List users."""
        return self.send("GET", f"/Users?{urlencode(query)}")


def find_by_name(site: Site) -> None:
    assert site.find(filter=f'userName eq "{email_of(site.number())}"')["totalResults"] == 1


def find_by_external_id(site: Site) -> None:
    assert site.find(filter=f'externalId eq "{external_id_of(site.number())}"')["totalResults"] == 1


def find_nobody(site: Site) -> None:
    assert site.find(filter=f'userName eq "nobody{site.number()}@example.net"')["totalResults"] == 0


def list_first(site: Site) -> None:
    assert len(site.find(startIndex=1, count=100)["Resources"]) == 100


def list_deep(site: Site) -> None:
    start = int(site.size.users * 0.95) - site.chance.randrange(100)
    assert len(site.find(startIndex=start, count=100)["Resources"]) == 100


def find_containing(site: Site) -> None:
    number = site.chance.randrange(10, 99)
    assert site.find(filter=f'displayName co "son{number}1"', count=100)["totalResults"] > 0


def show_user(site: Site) -> None:
    site.send("GET", f"/Users/{site.chance.choice(site.users)}")


def patch_user(site: Site) -> None:
    value = {"active": bool(site.chance.randrange(2)), "name.familyName": f"F{site.chance.random()}"}
    site.send("PATCH", f"/Users/{site.chance.choice(site.users)}", patch("replace", None, value))


def add_to_largest(site: Site) -> None:
    member = [{"value": site.users[site.chance.randrange(len(site.users))]}]
    site.send("PATCH", f"/Groups/{site.groups[0]}", patch("add", "members", member))


def add_to_small(site: Site) -> None:
    member = [{"value": site.users[site.chance.randrange(len(site.users))]}]
    site.send("PATCH", f"/Groups/{site.groups[1]}", patch("add", "members", member))


def show_largest_without_members(site: Site) -> None:
    site.send("GET", f"/Groups/{site.groups[0]}?excludedAttributes=members")


def show_largest(site: Site) -> None:
    assert len(site.send("GET", f"/Groups/{site.groups[0]}")["members"]) >= site.size.largest


def create_user(site: Site) -> None:
    site.made += 1
    name = f"made{site.made}@example.com"
    body = {"userName": name, "externalId": f"made-{site.made}", "displayName": f"Made {site.made}"}
    site.send("POST", "/Users", {**body, "emails": [{"value": name, "type": "work", "primary": True}]})


def patch(verb: str, path: str | None, value: Any) -> dict[str, Any]:
    """Return a PATCH message of one operation."""
    operation = {"op": verb, "value": value} if path is None else {"op": verb, "path": path, "value": value}
    return {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [operation]}


CASES: Final[dict[str, tuple[Callable[[Site], None], int]]] = {
    "userName eq": (find_by_name, 1000),
    "userName eq, nobody": (find_nobody, 300),
    "externalId eq": (find_by_external_id, 1000),
    "list of 100, first": (list_first, 100),
    "list of 100 at 95 %": (list_deep, 200),
    "displayName co": (find_containing, 100),
    "GET user": (show_user, 300),
    "PATCH user": (patch_user, 300),
    "PATCH group +1 of the largest": (add_to_largest, 300),
    "PATCH group +1 of ten": (add_to_small, 300),
    "GET the largest group without members": (show_largest_without_members, 200),
    "GET the largest group": (show_largest, 10),
    "POST user": (create_user, 500),
}
"""What is sent, and how often; what is written last grows the directory least."""


def measure(site: Site, share: float = 1.0) -> dict[str, dict[str, float]]:
    """Return p50 and p99 of each case, in milliseconds, over a share of the usual number of requests."""
    start = int(site.size.users * 0.9)
    site.users = [user["id"] for user in site.find(startIndex=start, count=200)["Resources"]]
    found = {}
    for name, (case, times) in CASES.items():
        for _ in range(5):
            case(site)
        spent = []
        for _ in range(math.ceil(times * share)):
            began = time.perf_counter()
            case(site)
            spent.append((time.perf_counter() - began) * 1000)
        found[name] = {"p50": quantile(spent, 0.5), "p99": quantile(spent, 0.99)}
        sys.stderr.write(f"{name:40} {found[name]['p50']:8.2f} {found[name]['p99']:8.2f} ms\n")
    return found


def results_table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return a Markdown table: p50 / p99 of each database, the goals, and whether they were reached."""
    engines = list(results)
    rows = []
    for name in CASES:
        goal = GOALS.get(name, Goal())
        cells = []
        for engine in engines:
            spent = results[engine][name]
            place = ENGINES.index(engine)
            limits = [None if each is None else each[place] for each in (goal.p50, goal.p99)]
            values = (spent["p50"], spent["p99"])
            missed = any(
                limit is not None and value > limit for limit, value in zip(limits, values, strict=True)
            )
            wanted = " / ".join(shown(limit) for limit in limits) if any(limits) else "-"
            cells += [" / ".join(map(shown, values)), wanted + (" MISSED" if missed else "")]
        rows.append([name, *cells])
    heads = [text for engine in engines for text in (f"{engine} p50 / p99 ms", "reach")]
    return table(["request", *heads], rows)


@contextlib.contextmanager
def running(engine: str, folder: Path, size: Population) -> Iterator[Site]:
    """Fill a database and start a gateway over it."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        url = f"sqlite:///{folder}/bench.db"
        if engine == "postgresql":
            server = start_postgres(folder)
            stack.callback(server.stop)
            url = server.create_database()
        began = time.monotonic()
        groups = asyncio.run(populate(parse(url, POOL_SIZE), size))
        sys.stderr.write(f"filled in {time.monotonic() - began:.0f} s\n")
        (state / "gatewayd.toml").write_text(CONFIGURATION.format(state=state, url=url, token=TOKEN))
        port, _, _ = stack.enter_context(started(ROOT, state))
        site = Site(port, size, groups)
        stack.callback(site.connection.close)
        yield site


def main() -> int:
    """Measure both databases and print the table."""
    parser = argparse.ArgumentParser("python -m tests.bench.provisioning", description=__doc__)
    parser.add_argument("--users", type=int, default=Population.users)
    parser.add_argument("--groups", type=int, default=Population.groups)
    parser.add_argument("--largest", type=int, default=Population.largest)
    parser.add_argument("--database", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of everything, such as -10 (needs root)"
    )
    options = parser.parse_args()
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + options.nice)
    size = Population(options.users, options.groups, options.largest)
    results = {}
    for engine in options.database:
        sys.stderr.write(f"== {engine}\n")
        with tempfile.TemporaryDirectory(prefix="bench-") as name, running(engine, Path(name), size) as site:
            results[engine] = measure(site)
    sys.stdout.write(results_table(results) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
