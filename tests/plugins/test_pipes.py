"""Function models as people write them: what they return, list, keep and read."""

import json

import pytest

from tests.fakes.daemons.plugin_site import Site, check_passport, wait_until

# Model, question, the answer to those who do not stream, and to those who do (None: the same).
ANSWERS = (
    ("token_stream", "hello there", None, None),
    ("mixed_stream", "go", "one two three four", None),
    ("line_proxy", "hello there", "hello there", "hello there "),
    ("plain_iterator", "hello there", "hello there ", None),
    ("sync_generator", "count", "1 2 3 done", None),
    ("streaming_response", "hello there", "hello there", "hello there "),
    ("model_result", "hello", "model: hello", None),
    ("completion_dict", "hello", "mapping: hello", None),
    ("manifold_method.vendor/large-2.5", "who", "I am vendor/large-2.5", None),
    ("manifold_method.vendor@west", "who", "I am vendor@west", None),
    ("manifold_method.a b", "who", "I am a b", None),
    ("manifold_attribute.good", "who", "good", None),
    ("manifold_async.far", "who", "from manifold_async.far", None),
    ("manifold_by_name", "who", "manifold_by_name", None),
    ("blocking_search", "go", "True A B", None),
    ("workflow_bridge", "go", "200  ", None),
    ("postponed", "who", "Ada None", None),
    ("probing", "look", "admin None None None", None),
    ("delegating", "hello", "mapping: hello and True", None),
    ("about_itself", "hello", "9.9.9 function_about_itself True []", None),
    ("messages_only", "text", "the returned text", None),
)


@pytest.mark.parametrize(
    ("model", "question", "whole", "streamed"), ANSWERS, ids=lambda value: str(value)[:40]
)
def test_an_answer_is_the_same_whole_and_streamed(
    site: Site, model: str, question: str, whole: str | None, streamed: str | None
) -> None:
    if whole is not None:
        assert site.say(model, question) == whole
        assert site.stream(model, question) == (streamed or whole)
    else:
        assert site.say(model, question).startswith(question)
        assert site.stream(model, question).startswith(question)


@pytest.mark.parametrize(
    ("model", "question", "whole", "streamed"), ANSWERS, ids=lambda value: str(value)[:40]
)
def test_an_answer_is_kept_in_a_chat(
    site: Site, model: str, question: str, whole: str | None, streamed: str | None
) -> None:
    message = site.ask(model, question)
    assert message["done"] is True
    assert "error" not in message
    if model != "workflow_bridge":
        assert (whole or question).strip() in message["content"]


def test_the_models_of_manifolds_are_listed_with_prefix_and_id(site: Site) -> None:
    names = {model["id"]: model["name"] for model in site.good("GET", "/api/models")["data"]}
    assert names["manifold_method.vendor/large-2.5"] == "many/Large"
    assert names["manifold_method.vendor@west"] == "many/West"
    assert names["manifold_method.a b"] == "many/With a blank"
    assert names["manifold_attribute.fast"] == "Two: Fast"
    assert names["manifold_async.far"] == "Far away"
    assert "manifold_async" not in names
    assert "manifold_by_name" in names


def test_what_comes_beside_text_passes(site: Site) -> None:
    status, reply = site.complete("mixed_stream", "go")
    assert status == 200
    assert reply["choices"][0]["message"]["reasoning_content"] == "let me think"
    assert reply["usage"]["total_tokens"] == 7
    assert site.complete("completion_dict", "go")[1]["usage"]["total_tokens"] == 3
    assert site.complete("model_result", "go")[1]["id"] == "made-by-hand"
    message = site.ask("mixed_stream", "go")
    assert message["statusHistory"] == [{"description": "mixing", "done": True}]
    assert message["usage"]["total_tokens"] == 7


@pytest.mark.parametrize(
    ("question", "sentence"),
    [("key", "the key is not valid"), ("raise", "ConnectionError: the model server does not answer")],
)
def test_a_pipe_that_fails_says_why(site: Site, question: str, sentence: str) -> None:
    status, reply = site.complete("error_dict", question)
    assert status == 500
    assert reply["error"]["code"] == "plugin_failed"
    assert sentence in reply["detail"]
    assert sentence in json.dumps(site.complete("error_dict", question, stream=True)[1])
    message = site.ask("error_dict", question)
    assert message["done"] is True
    assert sentence in message["error"]["content"]


@pytest.mark.parametrize(
    ("question", "content"), [("empty", None), ("nothing", None), ("text", "the returned text")]
)
def test_what_events_wrote_stays_unless_there_is_a_text(
    site: Site, question: str, content: str | None
) -> None:
    assert site.ask("messages_only", question)["content"] == (content or "written by events")


def test_the_ids_of_the_chat_are_in_the_closure_of_the_emitter(site: Site) -> None:
    asked = site.start("workflow_bridge", "go")
    message = site.finish(asked)
    assert message["content"] == f"200 {asked.chat_id} {asked.message_id}"
    assert [status["status"] for status in message["statusHistory"]] == ["in_progress", "complete"]


def test_tasks_run_on_after_the_answer(site: Site) -> None:
    asked = site.start("background_worker", "go")
    assert site.finish(asked)["content"] == "at once"
    wait_until(lambda: site.message(asked).get("statusHistory"))
    assert site.message(asked)["statusHistory"] == [{"description": "done later", "done": True}]
    assert site.message(asked)["content"] == "at once"


def test_a_closed_stream_closes_the_pipe(site: Site) -> None:
    asked = site.start("token_stream", "slowly " + "word " * 2000)
    wait_until(lambda: len(site.message(asked).get("statusHistory") or []) > 2)
    stopped = site.good("POST", f"/api/tasks/stop/{asked.reply['task_ids'][0]}")
    assert stopped["status"] is True
    message = site.finish(asked)
    assert message["done"] is True
    assert message["content"].startswith("slowly")
    assert len(message["content"].split()) < 2000
    closed = site.say("token_stream", "x")
    assert "(closed 0)" not in closed


def test_titles_are_asked_of_the_pipe_with_its_task(site: Site) -> None:
    asked = site.start("delegating", "hello", background_tasks={"title_generation": True})
    assert site.finish(asked)["content"] == "mapping: hello and True"
    assert site.good("GET", f"/api/v1/chats/{asked.chat_id}")["title"].startswith("A title of")


def test_old_names_are_imported(site: Site) -> None:
    messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    assert site.say("old_names", "", messages=messages) == "hello be kind ada@example.org True"


def test_a_name_that_is_missing_fails_where_it_is_used(site: Site) -> None:
    status, reply = site.complete("probing", "use")
    assert status == 500
    assert "open_webui.models.channels_of_tomorrow.Channels.get_channels is not provided" in reply["detail"]


def test_an_instance_lives_on(site: Site) -> None:
    first = int(site.say("counting", "how often"))
    assert [int(site.say("counting", "how often")) for _ in range(2)] == [first + 1, first + 2]


def test_output_of_plugins_is_logged_in_their_name(site: Site) -> None:
    site.say("about_itself", "for the log")
    site.daemon.wait_for("asked for the log")
    lines = [line for line in site.log().splitlines() if "asked for the log" in line]
    assert all("plugin output" in line and "about_itself" in line for line in lines)
    assert "BROKEN" not in site.log()


PASSPORTS = ("passport_pipe", "passport_pipe_plain")


@pytest.mark.parametrize("model", PASSPORTS)
def test_a_pipe_gets_everything_that_it_asks_for(site: Site, model: str) -> None:
    shown = json.loads(site.say(model, "hello", temperature=0.5))
    check_passport(shown, site, model, None)
    expected = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": False}
    assert shown["body"] == {**expected, "temperature": 0.5}
    assert shown["__files__"] is None


@pytest.mark.parametrize("model", PASSPORTS)
def test_a_pipe_in_a_chat_is_told_which(site: Site, model: str) -> None:
    fields = {
        "tool_ids": ["calculator"],
        "features": {"web_search": True},
        "variables": {"{{USER_NAME}}": "Ada"},
    }
    asked = site.start(model, "hello", session_id="here", **fields)
    shown = json.loads(site.finish(asked)["content"])
    check_passport(shown, site, model, asked)
    assert shown["body"]["stream"] is True
    assert shown["__tools__"]["add"]["tool_id"] == "calculator"
    metadata = shown["__metadata__"]
    assert metadata["features"] == {"web_search": True}
    assert metadata["variables"] == {"{{USER_NAME}}": "Ada"}
    assert metadata["tool_ids"] == ["calculator"]


def test_an_agent_runs_the_tools_itself(site: Site) -> None:
    assert (
        site.say("agent", json.dumps(["add", {"a": 1, "b": 5}]), tool_ids=["calculator"])
        == "calculator add 6"
    )
