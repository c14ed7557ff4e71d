"""A start with many plugins: the gateway is ready soon, and answers while they load."""

import os
import sys
import textwrap
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon, wait_ready
from tests.fakes.daemons.plugin_site import PASSWORD, Site, wait_until

COUNT = 400
READY_SECONDS = 20.0
ANSWER_SECONDS = 1.0

# What published plugins import.
HEAD = """
    import asyncio, base64, datetime, hashlib, json, logging, os, re, time, uuid
    from typing import Any, Optional
    import aiohttp, httpx, requests
    from fastapi import Request
    from pydantic import BaseModel, Field
    from open_webui.models.users import Users
    from open_webui.utils.misc import get_last_user_message
"""
VALVES = """
    class Valves(BaseModel):
        priority: int = 0
        url: str = Field("http://127.0.0.1:9", description="Where it asks.")
    def __init__(self):
        self.valves = self.Valves()
"""
KINDS = {
    "pipe": "class Pipe:{valves}\n    async def pipe(self, body, __user__=None):\n        yield 'a'\n",
    "filter": "class Filter:{valves}\n    def inlet(self, body):\n        return body\n",
    "action": "class Action:{valves}\n    async def action(self, body):\n        return None\n",
    "tools": "class Tools:{valves}\n    def add(self, a: int, b: int) -> int:\n        return a + b\n",
}


def write_plugins(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        source = KINDS[kind].format(valves=VALVES.rstrip())
        (folder / f"p{number:03}.py").write_text(textwrap.dedent(HEAD) + source)


class Watch:
    """Asks for /health again and again, and keeps the longest time of an answer since the first one."""

    def __init__(self, url: str) -> None:
        self.slowest, self.count = 0.0, 0
        self.fault: OSError | None = None
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.wait(0.02) and self.fault is None:
            began = time.monotonic()
            try:
                with urllib.request.urlopen(f"{self._url}/health", timeout=30):
                    self.count += 1
            except OSError as error:
                self.fault = error if self.count else None
            else:
                self.slowest = max(self.slowest, time.monotonic() - began)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def work_of(daemon: Daemon) -> float:
    """Return the seconds that a daemon has computed; those of the clock hang on the rest of the machine."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_start_with_many_plugins(tmp_path: Path) -> None:
    write_plugins(tmp_path / "plugins", COUNT)
    began = time.monotonic()
    settings = {"PLUGINS_DIR": str(tmp_path / "plugins")}
    with running_daemon(tmp_path / "s", ready=False, **settings) as daemon, Watch(daemon.base_url) as watch:
        wait_ready(daemon)
        ready = time.monotonic() - began
        form = {"email": "ada@example.org", "password": PASSWORD, "name": "Ada"}
        token = daemon.call("POST", "/api/v1/auths/signup", form)[1]["token"]
        site = Site(daemon, token, {})

        def are_loaded() -> bool:
            time.sleep(0.5)
            rows = [*site.good("GET", "/api/v1/functions/"), *site.good("GET", "/api/v1/tools/")]
            rows = [row for row in rows if row["id"].startswith("p")]
            assert not [row["error"] for row in rows if row["error"]]
            return len(rows) == COUNT and all(row["loaded"] for row in rows)

        wait_until(are_loaded, 100)
        loaded, work = time.monotonic() - began, work_of(daemon)
    told = f"ready {ready:.1f} s, loaded {loaded:.1f} s, computed {work:.1f} s, health {watch.slowest:.3f} s"
    sys.stderr.write(f"{told}, asked {watch.count} times\n")
    assert watch.fault is None
    assert ready < READY_SECONDS, told
    assert work < READY_SECONDS, told
    assert watch.slowest < ANSWER_SECONDS, told
