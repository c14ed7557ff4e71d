"""Plugins that fail in every way: each tells why in its own place, and the rest of the gateway goes on."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.daemons.plugin_site import BAD, CORPUS, Asked, Site, plugged, wait_until

GOOD = ("echo", "calculator", "token_stream", "tool_caller", "rank_first")
COUNTED = "never_returns_counted"
LOAD_SECONDS = 6


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """All bad plugins and a few good ones; it ends in the end, whatever hangs in it."""
    plugins = tmp_path_factory.mktemp("plugins")
    for path in [*BAD.glob("*.py"), *(CORPUS / f"{name}.py" for name in GOOD)]:
        shutil.copy(path, plugins)
    # Its calls are those of one test: calls that other tests stop are counted a moment later.
    shutil.copy(BAD / "never_returns_plainly.py", plugins / f"{COUNTED}.py")
    with plugged(tmp_path_factory.mktemp("s"), plugins, PLUGIN_LOAD_TIMEOUT=str(LOAD_SECONDS)) as running:
        yield running
        assert running.daemon.stop() == 0


@pytest.fixture(autouse=True)
def _others_unharmed(site: Site) -> Iterator[None]:
    """Check after each test that the gateway and its other plugins are well."""
    yield
    assert site.call("GET", "/health")[0] == 200
    assert json.loads(site.say("echo", "well?"))["messages"][-1]["content"] == "well?"
    assert site.run_tools("calculator", ("add", {"a": 1})) == ["3"]
    assert site.good("GET", "/api/models")["data"]


def problem(site: Site, family: str, plugin_id: str) -> str:
    """Return the last problem of a plugin, once it has one."""
    path = f"/api/v1/{family}/id/{plugin_id}"
    wait_until(lambda: site.good("GET", path).get("error"))
    return str(site.good("GET", path)["error"]["message"])


def test_others_answer_while_one_spins_at_load(site: Site) -> None:
    assert json.loads(site.say("echo", "x"))["model"] == "echo"
    assert "spins_at_load" not in [model["id"] for model in site.good("GET", "/api/models")["data"]]
    assert f"it did not load within {LOAD_SECONDS} s" in problem(site, "functions", "spins_at_load")


@pytest.mark.parametrize(
    ("family", "plugin_id", "sentence"),
    [
        ("functions", "raises_at_import", "KeyError: 'A_KEY_THAT_NOBODY_HAS_SET' (line 8)"),
        ("tools", "raises_at_construction", "RuntimeError: cannot reach the licence server (line 9)"),
        ("functions", "syntax_error", "SyntaxError in line 8: expected ':'"),
        ("functions", "exits_at_load", "SystemExit: 3 (line 9)"),
    ],
)
def test_what_does_not_load_says_why(site: Site, family: str, plugin_id: str, sentence: str) -> None:
    assert sentence in problem(site, family, plugin_id)
    assert site.complete(plugin_id, "x")[0] == 404


PIPELINES = "it has a class Pipeline, which is for a Pipelines server and not for a chat gateway"


def test_a_source_of_a_pipelines_server_is_named_as_such(site: Site) -> None:
    line = next(line for line in site.log().splitlines() if "pipelines_server.py" in line)
    assert "cannot use plugin file" in line
    assert PIPELINES in line


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pipelines_server", PIPELINES),
        ("raises_at_import", "A_KEY_THAT_NOBODY_HAS_SET"),
        ("raises_at_construction", "cannot reach the licence server (line 9)"),
        ("syntax_error", "SyntaxError in line 8"),
        ("exits_at_load", "SystemExit: 3"),
        ("spins_at_load", f"it did not load within {LOAD_SECONDS} s"),
    ],
)
def test_what_does_not_load_is_not_stored(site: Site, name: str, sentence: str) -> None:
    family = "tools" if name == "raises_at_construction" else "functions"
    content = (BAD / f"{name}.py").read_text()
    form = {"id": f"new_{name}", "name": name, "content": content, "meta": {"description": ""}}
    status, reply = site.call("POST", f"/api/v1/{family}/create", form)
    assert status == 400
    assert sentence in reply["detail"]
    assert site.call("GET", f"/api/v1/{family}/id/new_{name}")[0] == 404


def test_a_tool_that_does_not_load_is_told_to_who_asks_for_it(site: Site) -> None:
    fields: dict[str, Any] = {"tool_ids": ["raises_at_construction", "calculator"], "execute_tools": True}
    status, reply = site.complete("tool_caller", '[["add", {"a": 1}]]', **fields)
    assert status == 200
    assert json.loads(reply["choices"][0]["message"]["content"]) == ["3"]


def test_a_filter_that_does_not_load_is_not_left_out(site: Site) -> None:
    model = site.with_filters("exits_at_load", "rank_first")
    status, reply = site.complete(model, "x")
    assert status == 500
    assert "cannot answer without filter 'exits_at_load'" in reply["detail"]


@pytest.mark.parametrize(
    ("model", "question", "sentence"),
    [
        ("exits", "now", "pipe exits: SystemExit: 5"),
        ("recursion", "x", "pipe recursion: RecursionError: maximum recursion depth exceeded"),
        ("hides_errors", "x", "pipe hides_errors: Rude"),
        ("returns_objects", "x", "neither text nor an object"),
        ("returns_objects", "mapping", "it is not JSON"),
        ("returns_objects", "generator", "neither text nor an object"),
        ("asks_itself", "x", "plugins call each other, more than 8 levels deep"),
    ],
)
def test_what_fails_when_it_is_asked_says_why(site: Site, model: str, question: str, sentence: str) -> None:
    for stream in (False, True):
        status, reply = site.complete(model, question, stream=stream)
        assert (status, reply["error"]["code"]) == (500, "plugin_failed")
        assert sentence in reply["detail"]
    message = site.ask(model, question)
    assert message["done"] is True
    assert sentence in message["error"]["content"]


def test_a_task_that_exits_ends_nothing(site: Site) -> None:
    assert site.say("exits", "later") == "still here"
    assert site.say("exits", "later") == "still here"


def test_nonsense_is_emitted_without_harm(site: Site) -> None:
    with site.listening() as listener:
        asked = site.start("emits_nonsense", "x", listener.session_id)
        message = site.finish(asked)
        told = listener.told(asked)
    assert message["content"] == "all sent"
    assert "error" not in message
    assert "sources" not in message
    assert [status["description"] for status in message["statusHistory"] if "description" in status] == [
        "<object>",
        "from a model",
    ]
    assert {"type": "message", "data": {"content": None}} in told
    assert {"type": "files", "data": {"files": "no list"}} in told


def test_much_output_stays_in_the_log_line_by_line(site: Site) -> None:
    assert site.say("prints_a_lot", "x") == "printed"
    site.daemon.wait_for("1999 of noise")
    lines = [line for line in site.log().splitlines() if "prints_a_lot" in line or "of noise" in line]
    assert all("plugin output" in line for line in lines if "of noise" in line)
    assert max(map(len, lines)) < 10_000
    assert "\x1b" not in site.log()


def test_models_of_nonsense_are_left_out(site: Site) -> None:
    listed = [model["id"] for model in site.good("GET", "/api/models")["data"]]
    assert [name for name in listed if name.startswith("models_")] == ["models_of_nonsense.good"]
    assert site.say("models_of_nonsense.good", "x") == "models_of_nonsense.good"


def test_the_log_of_the_gateway_survives_who_switches_logging_off(site: Site) -> None:
    assert site.say("spoils_others", "x") == "loaded"
    before = len(site.daemon.log)
    site.complete("nobody-has-this", "x")
    wait_until(lambda: any("nobody-has-this" in line for line in site.daemon.log[before:]))


def hung(site: Site, model: str) -> Asked:
    """Ask a model that hangs, and wait until it does."""
    asked = site.start(model, "x")
    wait_until(lambda: site.message(asked).get("statusHistory"))
    return asked


def stopped_alone(site: Site, asked: Asked) -> tuple[bool, str]:
    """Check that others answer, stop an answer, and return whether it is done and what it holds."""
    assert json.loads(site.say("echo", "meanwhile"))["messages"][-1]["content"] == "meanwhile"
    assert site.stream("token_stream", "meanwhile").startswith("meanwhile")
    stopped = site.good("POST", f"/api/tasks/chat/{asked.chat_id}/stop")
    assert stopped["status"] is True
    message = site.finish(asked)
    return message["done"], message["content"]


@pytest.mark.parametrize(
    ("model", "content"),
    [("never_returns", "so far so good"), ("never_returns_plainly", ""), ("ignores_the_stop", "")],
)
def test_what_hangs_can_be_stopped_and_hangs_alone(site: Site, model: str, content: str) -> None:
    for _ in range(3):
        asked = hung(site, model)
        assert site.message(asked)["content"] == content
        assert stopped_alone(site, asked) == (True, content)


def test_what_blocks_its_loop_blocks_its_own_calls_alone(site: Site) -> None:
    assert stopped_alone(site, hung(site, "blocks_its_loop")) == (True, "")
    # The next ones do not even begin.
    for _ in range(2):
        assert stopped_alone(site, site.start("blocks_its_loop", "x")) == (True, "")


def test_plain_calls_that_run_on_are_counted(site: Site) -> None:
    shown = f"/api/v1/functions/id/{COUNTED}"
    for stopped in range(3):
        assert site.good("GET", shown)["left_behind"] == stopped
        asked = hung(site, COUNTED)
        site.good("POST", f"/api/tasks/chat/{asked.chat_id}/stop")
        site.finish(asked)
        wait_until(lambda stopped=stopped: site.good("GET", shown)["left_behind"] == stopped + 1)
    assert "still run" in problem(site, "functions", COUNTED)
    assert "stopped" in problem(site, "functions", COUNTED)


def test_many_that_hang_take_nobodys_place(site: Site) -> None:
    hanging = [hung(site, "never_returns_plainly") for _ in range(40)]
    assert json.loads(site.say("echo", "still"))["messages"][-1]["content"] == "still"
    for asked in hanging:
        site.good("POST", f"/api/tasks/chat/{asked.chat_id}/stop")
        assert site.finish(asked)["done"] is True


def test_who_hangs_at_shutdown_answers_until_then(site: Site) -> None:
    assert site.say("hangs_at_shutdown", "x") == "well"
