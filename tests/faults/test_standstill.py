"""The daemon, or a process that it has started, stands still for a while (SIGSTOP)."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.deadlines import GRACE_SECONDS, LATE_SECONDS
from tests.fakes.background import background_upstream
from tests.fakes.daemon import running_daemon
from tests.fakes.ingest_killing import QUERY, Caller
from tests.fakes.orphans import adopting, find_child
from tests.fakes.upstream import SILENCE, json_reply, openai_completion

pytestmark = pytest.mark.faults

EMBEDDING = "gatewayd.vectors.child"
LIMIT = 2.0
"""Seconds: the settings of the daemon here."""


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("is_daemon", [False, True], ids=["control", "daemon"])
def test_a_pause_of_the_daemon_is_not_the_providers(tmp_path: Path, *, is_daemon: bool) -> None:
    """The provider answers while the daemon stands still; one that answers too late is given up."""
    config = tmp_path / "gatewayd.toml"
    caller, replies = Caller(), []

    def ask() -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        replies.append(caller.ask("POST", "/api/chat/completions", body))

    with background_upstream() as provider:
        table = f'[[providers]]\nname = "p"\nbase_url = "{provider.url}/v1"\nfirst_byte_timeout = {LIMIT:g}\n'
        config.write_text(table)
        with running_daemon(tmp_path / "s", "-f", str(config)) as daemon:
            caller.daemon = daemon
            caller.sign_up()
            late = json_reply(openai_completion("in time"))
            provider.script(replace(late, before=SILENCE))
            asking = threading.Thread(target=ask)
            asking.start()
            provider.wait_silent()
            if is_daemon:
                with stopped(daemon.process.pid):
                    provider.release()
                    time.sleep(LIMIT + LATE_SECONDS + 1.0)
            asking.join(60)
    assert replies[0].status == (200 if is_daemon else 504)
    assert ("in time" in str(replies[0].json)) is is_daemon


def test_an_embedding_process_that_stands_still_is_replaced(tmp_path: Path) -> None:
    caller = Caller()
    with adopting(), running_daemon(tmp_path, RAG_EMBEDDING_TIMEOUT=f"{LIMIT:g}") as daemon:
        caller.daemon = daemon
        caller.sign_up()
        collection = caller.create()
        reply = caller.upload("a.txt", b"The heron stands in shallow water.", {"knowledge_id": collection})
        assert caller.wait([reply.json["id"]]) == {reply.json["id"]: "completed"}
        child = find_child(daemon.process.pid, EMBEDDING)
        assert child is not None
        os.kill(child, signal.SIGSTOP)

        asked = {"collection_names": [collection], "query": "Where does the heron stand?"}
        began = time.monotonic()
        found = caller.call("POST", QUERY, asked)
        assert time.monotonic() - began < LIMIT + GRACE_SECONDS
        assert f"did not answer within {LIMIT:g} s" in str(found["warnings"])
        assert found["documents"][0] == ["The heron stands in shallow water."]

        assert not caller.call("POST", QUERY, asked).get("warnings")
        replaced = find_child(daemon.process.pid, EMBEDDING)
        assert replaced not in {None, child}
        assert "killing it" in "".join(daemon.log)
