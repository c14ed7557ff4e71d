"""A key in a `key_file` is replaced by a reload; a file that cannot be read refuses the reload."""

import signal
from pathlib import Path

from tests.fakes.daemons.chat_site import wait_until
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.providers.background_upstream import background_upstream

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
