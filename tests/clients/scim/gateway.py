"""A running gateway that an identity provider may manage, with an administrator made by hand."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.scim.player import BASE
from tests.clients.scim.story import SCIM_JSON
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Reply, send

TOKEN = "scim-token-of-the-tests-0123456789abcdef"
PROVIDER = "idp"
SETTINGS = {"SCIM_ENABLED": "true", "SCIM_TOKEN": TOKEN, "SCIM_AUTH_PROVIDER": PROVIDER}
ADMINISTRATOR = {"name": "Root Administrator", "email": "root@example.org", "password": "correct horse"}


@dataclass(frozen=True)
class Gateway:
    """A running gateway and the id of its administrator."""

    daemon: Daemon
    administrator: str

    @property
    def url(self) -> str:
        """The address without a path."""
        return self.daemon.base_url

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a SCIM request with the token."""
        return ask(self.url, method, path, body, headers)


def ask(
    base_url: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """Send a SCIM request with the token to the gateway at an address."""
    data = None if body is None else json.dumps(body).encode()
    typed = {} if data is None else {"Content-Type": SCIM_JSON}
    signed = {"Authorization": f"Bearer {TOKEN}", **typed, **(headers or {})}
    return send(base_url, method, BASE + path, data, signed)


@contextlib.contextmanager
def opened_gateway(state: Path, **settings: str) -> Iterator[Gateway]:
    """Run a gateway; make its first administrator when there is none yet."""
    with running_daemon(state, **{**SETTINGS, **settings}) as daemon:
        status, answer = daemon.call("POST", "/api/v1/auths/signup", ADMINISTRATOR)
        yield Gateway(daemon, answer["id"] if status == 200 else "")
        assert "Traceback" not in "".join(daemon.log)
        assert TOKEN not in "".join(daemon.log)
