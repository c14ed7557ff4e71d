"""A whole gateway over one scripted provider that speaks three protocols, for the official clients."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.providers.background_upstream import Provider, background_upstream

PREFIXES = {"openai": "o.", "anthropic": "a.", "ollama": "l."}
NAMES = {"openai": "hosted", "anthropic": "native", "ollama": "runtime"}
TABLE = """
[[providers]]
name = "{name}"
kind = "{kind}"
base_url = "{url}"
prefix = "{prefix}"
{more}
"""
# Long enough for an answer that comes byte by byte on a busy machine, short enough to wait for a silent one.
HASTY = "connect_timeout = 0.4\nfirst_byte_timeout = 0.4\nstream_idle_timeout = 0.4"
MODELS = ("m", "n")


@dataclass(frozen=True)
class Scene:
    """A running gateway, the provider behind it, an administrator's key and session.

    Of each kind of source there are two that reach the same provider: `hosted` with models `o.`, and
    `hasty-hosted` with models `ho.` and little patience. `session` is the token of the administrator's
    session.
    """

    daemon: Daemon
    provider: Provider
    key: str
    session: str

    @property
    def url(self) -> str:
        """The address without a path."""
        return self.daemon.base_url


def model_of(kind: str, *, is_hasty: bool = False) -> str:
    """Return the id of a model of one kind of source."""
    return ("h" if is_hasty else "") + PREFIXES[kind] + "m"


def name_of(kind: str) -> str:
    """Return the name of a source, as it stands in messages."""
    return NAMES[kind]


def sign_up(daemon: Daemon) -> tuple[str, str]:
    """Make the first administrator; return a key and the token of a session."""
    form = {"name": "Root", "email": "root@example.org", "password": "correct horse"}
    session = daemon.call("POST", "/api/v1/auths/signup", form)[1]
    signed = {"Authorization": f"Bearer {session['token']}"}
    group: Any = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
    made = daemon.call("POST", "/api/v1/groups/create", group, signed)[1]["id"]
    daemon.call("POST", f"/api/v1/groups/id/{made}/users/add", {"user_ids": [session["id"]]}, signed)
    key: str = daemon.call("POST", "/api/v1/auths/api_key", {}, signed)[1]["api_key"]
    return key, session["token"]


@contextlib.contextmanager
def opened_scene(folder: Path) -> Iterator[Scene]:
    """Run the gateway; one more provider, `gone`, was there when models were listed and is no more."""
    with background_upstream(MODELS) as provider, contextlib.ExitStack() as stack:
        gone = stack.enter_context(background_upstream())
        configuration = folder / "gatewayd.toml"
        configuration.write_text(_providers(provider.url, gone.url))
        settings = {"ENABLE_API_KEYS": "true", "UPSTREAM_CONNECT_TIMEOUT": "2", "STREAM_HEAD_TIMEOUT": "1"}
        with running_daemon(folder / "state", "-f", str(configuration), **settings) as daemon:
            key, session = sign_up(daemon)
            status, listed = daemon.call("GET", "/api/models", headers={"Authorization": f"Bearer {key}"})
            assert status == 200
            assert "gone.m" in {model["id"] for model in listed["data"]}
            stack.close()
            yield Scene(daemon, provider, key, session)


def _providers(url: str, gone: str) -> str:
    tables = [TABLE.format(name="gone", kind="openai", url=f"{gone}/v1", prefix="gone.", more="")]
    for kind, prefix in PREFIXES.items():
        address = f"{url}/v1" if kind == "openai" else url
        for name, start, more in (("", "", ""), ("hasty-", "h", HASTY)):
            tables.append(
                TABLE.format(
                    name=name + NAMES[kind], kind=kind, url=address, prefix=start + prefix, more=more
                )
            )
    return "".join(tables)
