"""The client of Redis: time limits, the circuit breaker, and Sentinels."""

import asyncio
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gatewayd import extras
from gatewayd.bus.redis_client import PAUSE_SECONDS, RedisClient, reason_of
from gatewayd.errors import ErrorKind, GatewayError
from tests.conftest import missing
from tests.fakes.daemons.daemon import free_port
from tests.fakes.daemons.redis_server import RedisServer


async def test_one_command_after_a_failure_tries_for_all(redis: RedisServer) -> None:
    now = 100.0
    client = RedisClient(redis.url, clock=lambda: now)
    assert await client.run(lambda each: each.ping())
    redis.pause()
    with pytest.raises(GatewayError) as failed:
        await client.run(lambda each: each.ping())
    assert failed.value.kind is ErrorKind.UNAVAILABLE
    redis.go_on()
    asked: list[Any] = []

    async def ask(each: Any) -> None:
        asked.append(each)
        await each.ping()

    with pytest.raises(GatewayError, match="it failed a moment ago"):
        await client.run(ask)
    assert asked == []
    assert not client.is_usable
    now += PAUSE_SECONDS
    await client.run(ask)
    assert (len(asked), client.is_usable) == (1, True)
    with pytest.raises(GatewayError, match="cannot use Redis: "):
        await client.run(lambda each: each.execute_command("NOSUCH"))
    assert client.is_usable
    await client.close()


async def test_a_cancelled_command_opens_nothing_and_the_next_gets_its_own_reply(redis: RedisServer) -> None:
    client = RedisClient(redis.url)
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            task = group.create_task(client.run(lambda each, n=number: each.echo(f"lost {n}")))
            await asyncio.sleep(0)
            task.cancel()
    assert await client.run(lambda each: each.echo("mine")) == b"mine"
    reading = asyncio.ensure_future(client.read(lambda each: each.xread({"none": "0-0"}, block=1000)))
    await asyncio.sleep(0.05)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    redis.stop()
    with pytest.raises(GatewayError, match="cannot reach Redis: "):
        await client.read(lambda each: each.ping())
    await client.close()


@pytest.mark.parametrize(
    "url", ["http://x", "redis+sentinel://host", "redis://host:port", "redis+sentinel://h:x/s"]
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(GatewayError, match="cannot use redis_url: ") as refused:
        RedisClient(url)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.NOT_CONFIGURED, "redis_url")


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.MODULES, extras.PackageExtra.REDIS, ("no_such_module",))  # type: ignore[call-overload]
    with pytest.raises(GatewayError, match=r"pip install 'gatewayd\[redis\]' installs it"):
        RedisClient("redis://127.0.0.1")
    assert reason_of(TimeoutError()) == "TimeoutError"


async def test_sentinels_name_the_master(tmp_path: Path) -> None:
    program, sentinel = shutil.which("redis-server"), shutil.which("redis-sentinel")
    if program is None or sentinel is None:
        missing("redis-sentinel", "Debian: apt-get install redis-sentinel")
    ports = free_port(), free_port()
    configuration = tmp_path / "sentinel.conf"
    configuration.write_text(
        f"port {ports[1]}\nbind 127.0.0.1\nsentinel monitor mine 127.0.0.1 {ports[0]} 1\n"
    )
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    arguments = ["--port", str(ports[0]), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    processes = [
        subprocess.Popen([str(program), *arguments], **quiet),  # type: ignore[call-overload]
        subprocess.Popen([str(sentinel), str(configuration)], **quiet),  # type: ignore[call-overload]
    ]
    try:
        client = RedisClient(f"redis+sentinel://127.0.0.1:{ports[1]}/mine/1")
        async with asyncio.timeout(20):
            while True:
                try:
                    assert await client.run(lambda each: each.set("a", "b"))
                except GatewayError:
                    await asyncio.sleep(0.2)
                else:
                    break
        with socket.create_connection(("127.0.0.1", ports[0])) as channel:
            channel.sendall(b"SELECT 1\r\nGET a\r\n")
            await asyncio.sleep(0.1)
            assert channel.recv(100).endswith(b"$1\r\nb\r\n")
        await client.close()
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
