"""Stored providers are used at once, after a restart and a reload; those of the settings come first."""

import signal
from pathlib import Path
from typing import Any

from tests.fakes.daemons.chat_site import wait_until
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.providers.background_upstream import background_upstream

AUTHS = "/api/v1/auths"
ADMIN = {"email": "admin@example.com", "password": "correct horse battery"}
KEY = "canary-provider-key"
TABLE = '[[providers]]\nname = "stored"\nbase_url = "http://127.0.0.1:9/v1"\n'


class Administrator:
    """An administrator of a daemon."""

    def __init__(self, daemon: Daemon, path: str = "signin") -> None:
        self.daemon = daemon
        status, session = daemon.call("POST", f"{AUTHS}/{path}", {**ADMIN, "name": "Admin"})
        assert status == 200, session
        self.token = session["token"]

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.daemon.call(method, path, body, {"Authorization": f"Bearer {self.token}"})
        assert status == 200, answer
        return answer

    def models(self) -> set[str]:
        return {model["id"] for model in self.ok("GET", "/api/models?refresh=true")["data"]}

    def options(self) -> list[dict[str, Any]]:
        return list(self.ok("GET", "/openai/config")["OPENAI_API_CONFIGS"].values())


def test_stored_providers_over_restarts_reloads_and_another_secret(tmp_path: Path) -> None:
    state, file = tmp_path / "s", tmp_path / "gatewayd.toml"
    file.write_text("")
    arguments = ("-f", str(file))
    with background_upstream(("big",)) as provider:
        with running_daemon(state, *arguments, WEBUI_SECRET_KEY="a" * 40) as daemon:
            admin = Administrator(daemon, "signup")
            body = {"OPENAI_API_BASE_URLS": [f"{provider.url}/v1"], "OPENAI_API_KEYS": [KEY]}
            options = {"0": {"name": "stored", "prefix_id": "my"}}
            admin.ok("POST", "/openai/config/update", {**body, "OPENAI_API_CONFIGS": options})
            assert admin.models() == {"my.big"}
            assert not any(KEY in line for line in daemon.log)
            assert daemon.stop() == 0
        assert all(KEY.encode() not in path.read_bytes() for path in state.rglob("*") if path.is_file())

        with running_daemon(state, *arguments, WEBUI_SECRET_KEY="a" * 40) as daemon:
            admin = Administrator(daemon)
            assert admin.models() == {"my.big"}
            assert provider.fake.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
            file.write_text(TABLE)
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(admin.options()) == 2, "the reload")
            locked, own = admin.options()
            assert (locked["origin"], own["origin"]) == ("settings", "database")
            assert "the settings have a provider of this name" in own["problem"]
            file.write_text("")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(admin.options()) == 1, "the second reload")
            assert admin.models() == {"my.big"}
            assert daemon.stop() == 0

        with running_daemon(state, *arguments, WEBUI_SECRET_KEY="b" * 40) as daemon:
            admin = Administrator(daemon)
            (own,) = admin.options()
            assert "enter the key again" in own["problem"]
            assert admin.models() == set()
            entered = {**body, "OPENAI_API_CONFIGS": {"0": {**options["0"], "id": own["id"]}}}
            admin.ok("POST", "/openai/config/update", entered)
            assert admin.models() == {"my.big"}
