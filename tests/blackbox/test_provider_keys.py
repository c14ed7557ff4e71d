"""A provider's key is replaced by a reload or a command; a bad one leaves the former in force."""

import json
import signal
import urllib.request
from pathlib import Path

from tests.fakes.daemons.chat_site import wait_until
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import SILENCE, FakeUpstream, Recorded, Reply, json_reply, openai_stream

AUTHS = "/api/v1/auths"
ADMIN = {"email": "admin@example.com", "password": "correct horse battery", "name": "Admin"}
FORMER, FRESH = "canary-former-key", "canary-fresh-key"
QUESTION = {"model": "big", "messages": [{"role": "user", "content": "hello"}]}


def test_a_reload_rotates_the_key_of_a_provider(tmp_path: Path) -> None:
    file, key = tmp_path / "gatewayd.toml", tmp_path / "provider-key"
    key.write_text(f"{FORMER}\n")
    key.chmod(0o600)
    with background_upstream(("big",)) as provider:
        file.write_text(
            f'[[providers]]\nname = "one"\nbase_url = "{provider.url}/v1"\nkey_file = "provider-key"\n'
        )
        with running_daemon(tmp_path / "s", "-f", str(file)) as daemon:
            _, session = daemon.call("POST", f"{AUTHS}/signup", ADMIN)
            caller = {"Authorization": f"Bearer {session['token']}"}

            def sent_key() -> str:
                status, answer = daemon.call("POST", "/api/chat/completions", QUESTION, caller)
                assert status == 200, answer
                return provider.fake.requests[-1].headers["Authorization"].removeprefix("Bearer ")

            def reload(logged: str) -> None:
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: any(logged in line for line in daemon.log), logged)

            assert sent_key() == FORMER
            key.write_text(f"{FRESH}\n")
            assert sent_key() == FORMER
            reload("reloaded")
            assert sent_key() == FRESH

            # A file that cannot be read refuses the reload, and the key in force stays.
            key.unlink()
            reload("cannot read key_file")
            assert sent_key() == FRESH
            assert not any(secret in line for line in daemon.log for secret in (FORMER, FRESH))
            assert daemon.stop() == 0


class GuardedUpstream(FakeUpstream):
    """A provider that knows two keys."""

    def _default(self, request: Recorded) -> Reply:
        if request.headers.get("Authorization") in (f"Bearer {FORMER}", f"Bearer {FRESH}"):
            return super()._default(request)
        error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
        return json_reply({"error": error}, 401)


def test_a_command_rotates_the_key_of_a_provider_of_the_database(tmp_path: Path) -> None:
    rotate = ("secret", "rotate-provider", "stored", "--key-file", "-", "--yes")
    with (
        background_upstream(("big",), kind=GuardedUpstream) as provider,
        running_daemon(tmp_path / "s") as daemon,
    ):
        _, session = daemon.call("POST", f"{AUTHS}/signup", ADMIN)
        caller = {"Authorization": f"Bearer {session['token']}", "Content-Type": "application/json"}
        body = {"OPENAI_API_BASE_URLS": [f"{provider.url}/v1"], "OPENAI_API_KEYS": [FORMER]}
        named = {**body, "OPENAI_API_CONFIGS": {"0": {"name": "stored"}}}
        assert daemon.call("POST", "/openai/config/update", named, caller)[0] == 200

        def sent_key() -> str:
            status, answer = daemon.call("POST", "/api/chat/completions", QUESTION, caller)
            assert status == 200, answer
            return provider.last().headers["Authorization"].removeprefix("Bearer ")

        first, *rest = openai_stream(["one", "two"])
        provider.script(Reply(steps=[first, SILENCE, *rest]))
        asked = json.dumps({**QUESTION, "stream": True}).encode()
        chat = urllib.request.Request(f"{daemon.base_url}/api/chat/completions", asked, caller)
        with urllib.request.urlopen(chat, timeout=60) as stream:
            assert b"one" in stream.readline()
            provider.wait_silent()
            refused = daemon.run_ctl(*rotate, input="canary-wrong-key")
            assert refused.returncode == 1, refused
            assert "stored" in refused.stderr
            assert sent_key() == FORMER
            done = daemon.run_ctl(*rotate, input=FRESH)
            assert done.returncode == 0, done.stderr
            assert sent_key() == FRESH
            # What was asked with the former key goes on.
            provider.release()
            assert b"two" in (told := stream.read())
            assert told.endswith(b"data: [DONE]\n\n")
        printed = [*daemon.log, done.stdout, done.stderr, refused.stdout, refused.stderr]
        assert not any(key in line for line in printed for key in (FORMER, FRESH, "canary-wrong-key"))
