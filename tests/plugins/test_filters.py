"""Filters as people write them: their hooks, their order, and how they refuse."""

import json
import uuid
from typing import Any

import pytest

from tests.fakes.daemons.plugin_site import Site, check_passport


def asked_text(site: Site, model: str, text: str, **fields: Any) -> Any:
    """Return the last message as it reached the model."""
    return json.loads(site.say(model, text, **fields))["messages"][-1]["content"]


def completed(site: Site, model: str, answer: str, **fields: Any) -> tuple[int, Any]:
    """Send a finished chat to the outlet filters."""
    messages = [{"role": "user", "content": "question"}, {"role": "assistant", "content": answer}]
    return site.call("POST", "/api/chat/completed", {"model": model, "messages": messages, **fields})


def filtered(site: Site, model: str, answer: str, **fields: Any) -> Any:
    status, reply = completed(site, model, answer, **fields)
    assert status == 200, reply
    return reply["messages"][-1]["content"]


def test_filters_run_by_the_priority_of_the_class(site: Site) -> None:
    model = site.with_filters("rank_a_second", "rank_first")
    assert asked_text(site, model, "go") == "go first second"
    assert filtered(site, model, "done") == "done first second"
    assert site.ask(model, "go")["content"].endswith(" first second")


def test_a_filter_that_is_not_for_all_runs_where_it_is_attached(site: Site) -> None:
    assert asked_text(site, "echo", "go") == "go"


def test_a_toggle_runs_when_it_is_switched_on(site: Site) -> None:
    model = site.with_filters("switchable", "rank_first")
    assert asked_text(site, model, "go") == "go first"
    assert asked_text(site, model, "go", filter_ids=["switchable"]) == "go first (switched on)"
    listed = next(item for item in site.good("GET", "/api/models")["data"] if item["id"] == model)
    button = next(item for item in listed["filters"] if item["id"] == "switchable")
    assert button["icon"].startswith("data:image/svg+xml")
    message = site.ask(model, "go", filter_ids=["switchable"])
    assert message["statusHistory"] == [{"description": "switched on", "done": True}]


@pytest.mark.parametrize("filter_id", ["file_reader", "file_module"])
def test_a_filter_reads_the_files_itself(site: Site, filter_id: str) -> None:
    model = site.with_filters(filter_id)
    files = [{"type": "text", "id": "f1", "name": "a.txt", "content": "SECRET CONTENT"}]
    shown = json.loads(site.say(model, "go", files=files))
    assert shown["messages"][-1]["content"] in ("go files ['f1'] 1", "go files 1")
    assert "SECRET CONTENT" not in json.dumps(shown)
    assert "files" not in shown


def test_nothing_returned_is_the_body_as_it_is(site: Site) -> None:
    model = site.with_filters("forgetful")
    assert asked_text(site, model, "go") == "go (changed in place)"
    assert json.loads(site.stream(model, "go"))["messages"][-1]["content"] == "go (changed in place)"
    assert filtered(site, model, "done") == "done (outlet)"


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        ("a forbidden word", 400, "This word is not allowed here."),
        ("too often", 429, "Too many questions, wait a minute."),
        ("a locked door", 403, "Not for you."),
    ],
)
def test_a_filter_refuses_with_its_own_words(site: Site, text: str, status: int, sentence: str) -> None:
    model = site.with_filters("policy")
    for stream in (False, True):
        found, reply = site.complete(model, text, stream=stream)
        assert (found, reply["detail"]) == (status, sentence)
    message = site.ask(model, text)
    assert (message["done"], message["error"]) == (True, {"content": sentence})


def test_a_filter_refuses_in_every_dialect(site: Site) -> None:
    form = {"model": site.with_filters("policy"), "max_tokens": 10}
    sent = {**form, "messages": [{"role": "user", "content": "forbidden"}]}
    status, reply = site.call("POST", "/api/v1/messages", sent)
    assert status == 400
    assert reply["error"]["message"] == "This word is not allowed here."


def test_a_stream_hook_that_fails_leaves_the_chunks(site: Site) -> None:
    model = site.with_filters("policy")
    assert json.loads(site.stream(model, "fine"))["messages"][-1]["content"] == "fine"


def test_an_outlet_that_fails_is_told_to_who_asks_and_spoils_no_answer(site: Site) -> None:
    model = site.with_filters("policy")
    status, reply = completed(site, model, "done")
    assert (status, reply["detail"]) == (400, "the outlet fails")
    message = site.ask(model, "fine")
    assert message["done"] is True
    assert "error" not in message


def test_chunks_and_answers_are_changed(site: Site) -> None:
    model = site.with_filters("shouting")
    assert '"CONTENT": "GO"' in site.stream(model, "go")
    assert filtered(site, model, "done") == "done -- to Ada"
    message = site.ask(model, "go")
    assert '"CONTENT": "GO"' in message["content"]
    assert message["content"].endswith(" -- to Ada")
    assert message["originalContent"] == message["content"].removesuffix(" -- to Ada")


def test_direct_answers_are_not_filtered_by_outlets(site: Site) -> None:
    assert "-- to Ada" not in site.say(site.with_filters("shouting"), "go")


def test_one_instance_counts_for_all(site: Site) -> None:
    model = site.with_filters("stream_counter")
    numbers = [frame["chunk_number"] for frame in site.frames(model, "go") if "chunk_number" in frame]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    again = [frame["chunk_number"] for frame in site.frames(model, "go") if "chunk_number" in frame]
    assert again[0] == numbers[-1] + 1


def test_further_fields_travel_to_the_model(site: Site) -> None:
    model = site.with_filters("extra_fields")
    shown = json.loads(site.say(model, "go"))
    assert shown["chat_template_kwargs"] == {"enable_thinking": False}
    assert shown["user"] == model
    told = site.with_filters("extra_fields", base="passport_pipe")
    assert json.loads(site.say(told, "go"))["__metadata__"]["mine"] == "kept"


@pytest.mark.parametrize("filter_id", ["passport_filter", "passport_filter_plain"])
def test_each_hook_gets_everything_that_it_asks_for(site: Site, filter_id: str) -> None:
    model = site.with_filters(filter_id)
    inlet = json.loads(json.loads(site.say(model, "go"))["messages"][0]["content"])
    check_passport(inlet, site, filter_id, None)
    stream = next(frame["passport"] for frame in site.frames(model, "go") if "passport" in frame)
    check_passport(stream, site, filter_id, None)
    outlet = json.loads(filtered(site, model, "done"))
    check_passport(outlet, site, filter_id, None)


@pytest.mark.parametrize("filter_id", ["passport_filter", "passport_filter_plain"])
def test_each_hook_is_told_the_chat(site: Site, filter_id: str) -> None:
    model = site.with_filters(filter_id)
    asked = site.start(model, "go", session_id="here")
    message = site.finish(asked)
    check_passport(json.loads(message["content"]), site, filter_id, asked)
    inlet = json.loads(json.loads(message["originalContent"])["messages"][0]["content"])
    check_passport(inlet, site, filter_id, asked)


def test_ids_of_a_finished_chat_may_be_missing_or_unknown(site: Site) -> None:
    model = site.with_filters("rank_first")
    assert filtered(site, model, "done", chat_id=str(uuid.uuid4()), session_id="s") == "done first"
    assert filtered(site, model, "done", chat_id="", id="") == "done first"
