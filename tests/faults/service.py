"""A daemon as a service manager runs it: stopped and started again on the same state and address."""

import contextlib
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.daemons.chat_site import AUTHS, PASSWORD, SETTINGS, write_plugins
from tests.fakes.daemons.daemon import Daemon, free_port, running_daemon

PIPES = {
    "again": '''"""
title: Again
"""
import asyncio


class Pipe:
    async def pipe(self, body):
        """Say what it is asked, a word every 20 ms."""
        for word in body["messages"][-1]["content"].split():
            yield word + " "
            await asyncio.sleep(0.02)
'''
}
BACKLOG = 1024
STOP_SECONDS = 15.0
"""Half the drain timeout: nothing that clients do here takes so long."""


@dataclass
class Service:
    """Runs one daemon after the other; with a socket of its own each is activated with that."""

    folder: Path
    port: int
    channel: socket.socket | None
    credential: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)
    _daemon: Daemon | None = None

    @property
    def host(self) -> str:
        """The address."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Daemon:
        """Start a daemon and wait until it serves."""
        settings = {**SETTINGS, "PLUGINS_DIR": str(write_plugins(self.folder, PIPES)), "PORT": str(self.port)}
        activated = () if self.channel is None else (self.channel,)
        daemon = self._stack.enter_context(running_daemon(self.folder / "s", activated=activated, **settings))
        self._daemon = daemon
        daemon.base_url = f"http://{self.host}"
        return daemon

    def stop(self) -> None:
        """Tell the daemon to stop; it must end well and have nothing unfinished."""
        assert self._daemon is not None
        began = time.monotonic()
        assert self._daemon.stop() == 0
        took = time.monotonic() - began
        assert took < STOP_SECONDS, took
        self._stack.close()
        log = "".join(self._daemon.log)
        assert "unfinished" not in log, log[-4000:]
        assert "Traceback" not in log, log[-4000:]

    def restart(self) -> None:
        """Stop the daemon and start the next."""
        self.stop()
        self.start()


@contextlib.contextmanager
def running_service(folder: Path, *, is_activated: bool) -> Iterator[Service]:
    """Run a service with an administrator."""
    with ExitStack() as stack:
        channel = None
        if is_activated:
            channel = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
        service = Service(folder, free_port() if channel is None else channel.getsockname()[1], channel)
        stack.callback(service._stack.close)
        form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
        service.credential = service.start().call("POST", f"{AUTHS}/signup", form)[1]["token"]
        yield service
