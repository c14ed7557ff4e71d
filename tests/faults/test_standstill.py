"""The daemon, or a process that it has started, stands still for a while (SIGSTOP)."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.deadlines import GRACE_SECONDS, PAUSE_THRESHOLD_SECONDS
from tests.fakes.daemons.child_processes import adopting, find_child
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.ingest_runs import FILES, QUERY, Caller
from tests.fakes.daemons.paused_processes import stopped
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import SILENCE, json_reply, openai_completion
from tests.faults.acknowledged import Some
from tests.faults.lines import line_of

pytestmark = pytest.mark.faults

EMBEDDING = "gatewayd.vectors.worker"
EXTRACTION = "gatewayd.extract.child"
HERON = "The heron stands in shallow water."
OWL = "The owl is out at night."
LIMIT = 2.0
"""Seconds: the settings of the daemon here."""


@pytest.mark.parametrize(
    "is_daemon", [False, pytest.param(True, marks=pytest.mark.short)], ids=["control", "daemon"]
)
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
            line, some = line_of(daemon, caller.token), Some()
            asking, making = threading.Thread(target=ask), threading.Thread(target=some.make, args=(line,))
            asking.start()
            provider.wait_silent()
            if is_daemon:
                with stopped(daemon.process.pid):
                    provider.release()
                    making.start()
                    time.sleep(LIMIT + PAUSE_THRESHOLD_SECONDS + 1.0)
                making.join(60)
                some.assert_there(line)
            asking.join(60)
    assert replies[0].status == (200 if is_daemon else 504)
    assert ("in time" in str(replies[0].json)) is is_daemon


def test_processes_that_stand_still_are_replaced(tmp_path: Path) -> None:
    caller = Caller()
    settings = {"RAG_EMBEDDING_TIMEOUT": f"{LIMIT:g}", "INGEST_TIMEOUT": f"{LIMIT:g}"}
    with adopting(), running_daemon(tmp_path, **settings) as daemon:
        caller.daemon = daemon
        caller.sign_up()
        collection = caller.create()
        add(caller, collection, HERON)
        stand_still(daemon, EMBEDDING)
        asked = {"collection_names": [collection], "query": "Where does the heron stand?"}
        began = time.monotonic()
        found = caller.call("POST", QUERY, asked)
        assert time.monotonic() - began < LIMIT + GRACE_SECONDS
        assert f"did not answer within {LIMIT:g} s" in str(found["warnings"])
        assert found["documents"][0] == [HERON]

        stand_still(daemon, EXTRACTION)
        add(caller, collection, OWL)
        texts = caller.search(collection, "birds")["documents"]
        assert sorted(texts) == [HERON, OWL]
        assert "killing it" in "".join(daemon.log)


def add(caller: Caller, collection: str, text: str) -> None:
    """Upload a document into a collection and wait until it can be found."""
    metadata = {"knowledge_id": collection}
    file_id = caller.upload(f"{len(text)}.txt", text.encode(), metadata).json["id"]
    ended = caller.wait([file_id])
    assert ended == {file_id: "completed"}, caller.call("GET", f"{FILES}/{file_id}")


def stand_still(daemon: Daemon, module: str) -> None:
    """Stop the process of a daemon that runs a module, for ever."""
    child = find_child(daemon.process.pid, module)
    assert child is not None
    os.kill(child, signal.SIGSTOP)
