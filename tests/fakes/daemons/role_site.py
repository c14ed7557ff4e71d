"""A gateway over a provider of all routes, with an account of each role, for tests of who may do what."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import Role
from tests.fakes.daemons.bad_input_site import PROVIDERS
from tests.fakes.daemons.daemon import Daemon, decoded, running_daemon
from tests.fakes.http.raw_http import Kept, Reply
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream

PASSWORD = "correct horse"
AUTHS, USERS, GROUPS, MODELS = "/api/v1/auths", "/api/v1/users", "/api/v1/groups", "/api/v1/models"
PUBLIC_GRANT = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
PERMITTED = ("o.m", "a.m", "l.m")
"""Everybody may use these; each source also has a model `other` that nobody was granted."""
SCIM_TOKEN = "scim-canary-0123456789abcdef0123456789abcdef"
SETTINGS = {
    "ENV": "dev",
    "SCIM_ENABLED": "true",
    "SCIM_TOKEN": SCIM_TOKEN,
    "SCIM_AUTH_PROVIDER": "idp",
    "GLOBAL_LOG_LEVEL": "DEBUG",
}


@dataclass
class Site:
    """A running gateway with an account of each role; `admin`, `user` and `pending` are session tokens."""

    daemon: Daemon
    provider: Provider
    kept: Kept = field(init=False)
    admin: str = ""
    user: str = ""
    pending: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.kept = Kept(self.daemon.base_url)

    def close(self) -> None:
        """Close the connections to the daemon."""
        self.kept.close()

    def call(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Send JSON and return the status and what the body of the reply says, as JSON if it is."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else json.dumps(body).encode()
        reply = self.send(method, path, data, token, {"Content-Type": "application/json", **sent})
        return reply.status, decoded(reply.body)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send bytes and return the whole reply."""
        signed = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self.kept.send(method, path, body, {**signed, **(headers or {})})

    def add(self, role: Role) -> tuple[str, str]:
        """Add an account and return its id and a session token."""
        form = {"name": "N", "email": f"u{next(self.numbers)}@example.org", "password": PASSWORD}
        status, made = self.call("POST", f"{AUTHS}/add", {**form, "role": role.value}, self.admin)
        assert status == 200, made
        return made["id"], made["token"]

    def add_group(self, *members: str, **permissions: Mapping[str, bool]) -> str:
        """Add a group and return its id."""
        form = {"name": f"g{next(self.numbers)}", "description": "", "permissions": permissions}
        group: str = self.call("POST", f"{GROUPS}/create", form, self.admin)[1]["id"]
        self.call("POST", f"{GROUPS}/id/{group}/users/add", {"user_ids": members}, self.admin)
        return group

    def configure(self, **values: Any) -> None:
        """Change the settings that administrators change while the daemon runs."""
        status, answer = self.call("POST", f"{AUTHS}/admin/config", values, self.admin)
        assert status == 200, answer

    def permit(self, model_id: str) -> None:
        """Let everybody use a model."""
        form = {"id": model_id, "access_grants": PUBLIC_GRANT, "is_active": True}
        status, answer = self.call("POST", f"{MODELS}/create", form, self.admin)
        assert status == 200, answer


@contextlib.contextmanager
def opened_roles(folder: Path, **settings: str) -> Iterator[Site]:
    """Run the gateway until the end of the block, by default with SCIM on."""
    with background_upstream(("m", "other"), kind=Everything) as provider:
        configuration = folder / "gatewayd.toml"
        configuration.write_text(PROVIDERS.format(url=provider.url))
        given = {**SETTINGS, **settings}
        with (
            running_daemon(folder / "state", "-f", str(configuration), **given) as daemon,
            contextlib.closing(Site(daemon, provider)) as made,
        ):
            form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
            made.admin = made.call("POST", f"{AUTHS}/signup", form)[1]["token"]
            made.ids["user"], made.user = made.add(Role.USER)
            made.ids["pending"], made.pending = made.add(Role.PENDING)
            for model_id in PERMITTED:
                made.permit(model_id)
            yield made
