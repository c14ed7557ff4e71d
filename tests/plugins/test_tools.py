"""Tools as people write them: how they are described, called, and what becomes of their results."""

import json
from typing import Any

import pytest

from tests.fakes.daemons.plugin_site import Site, check_passport

COMPONENT = {"status": "success", "code": "ui_component"}


def described(site: Site, tool_id: str) -> dict[str, Any]:
    """Return the functions of a tool as a model gets them, by name."""
    listed = json.loads(site.say("tool_caller", "list", tool_ids=[tool_id], execute_tools=True))
    return {function["name"]: function for function in listed}


def test_every_public_method_is_offered(site: Site) -> None:
    functions = described(site, "calculator")
    assert sorted(functions) == ["add", "emit_status", "extract_event_info", "shout"]
    add = functions["add"]
    assert add["description"] == "Add two numbers.\nThe second is two when it is not given."
    assert add["parameters"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first number."},
            "b": {"type": "integer", "description": "The second number.", "default": 2},
        },
        "required": ["a"],
    }
    assert functions["shout"]["parameters"]["properties"] == {"text": {"type": "string"}}
    assert functions["emit_status"]["description"] == ""
    assert functions["emit_status"]["parameters"]["required"] == ["level", "message", "done"]


def test_annotations_become_a_schema(site: Site) -> None:
    parameters = described(site, "typed_arguments")["weather"]["parameters"]
    shown = parameters["properties"]
    assert parameters["required"] == ["place"]
    assert not [name for name in shown if name.startswith("__")]
    assert shown["place"]["properties"]["city"] == {"type": "string", "description": "The town."}
    assert shown["place"]["required"] == ["city"]
    assert shown["place"]["description"] == "Where."
    assert shown["unit"]["enum"] == ["celsius", "fahrenheit"]
    assert shown["days"]["type"] == "integer"
    assert shown["tags"]["items"] == {"type": "string"}
    assert shown["limits"]["additionalProperties"] == {"type": "number"}
    assert {choice["type"] for choice in shown["when"]["anyOf"]} == {"integer", "string"}
    assert shown["exact"]["type"] == "boolean"


def test_plain_and_asynchronous_methods_are_called(site: Site) -> None:
    calls = (
        ("add", {"a": 1}),
        ("add", {"a": 2, "b": 3}),
        ("shout", {"text": "hey", "unknown": 1}),
        ("emit_status", {"level": "info", "message": "m", "done": True}),
        ("extract_event_info", {}),
    )
    assert site.run_tools("calculator", *calls) == ["3", "5", "HEY", "info m True", "None"]


def test_arguments_are_given_as_they_were_sent(site: Site) -> None:
    sent = {"place": {"city": "Bonn"}, "unit": "celsius", "days": "2"}
    told = json.loads(site.run_tools("typed_arguments", ("weather", sent))[0])
    assert told["place"] in ({"city": "Bonn"}, "city='Bonn' country=None")
    assert (told["unit"], told["days"], told["tags"]) == ("celsius", 2, [])


RESULTS = (
    ("page", COMPONENT, {"embeds": ["<h1>page</h1>"]}),
    ("page_with_context", {"rows": 2}, {"embeds": ["<h1>tuple</h1>"]}),
    ("page_source", "<p>read me</p>", {}),
    ("table", [1, {"two": 2}], {}),
    ("mapping", {"grüße": "yes"}, {}),
    ("text", "a text", {}),
    ("nothing", "", {}),
    ("number", 7, {}),
    ("fails", "the door is closed", {}),
    ("parts", "a picture", {"files": 1}),
    ("picture", "The user sees the result: image.", {"files": 1}),
    ("writes", "written", {"embeds": ["<i>tool</i>"]}),
)


@pytest.mark.parametrize(("name", "told", "kept"), RESULTS, ids=[row[0] for row in RESULTS])
def test_results_are_told_to_the_model_and_kept(
    site: Site, name: str, told: Any, kept: dict[str, Any]
) -> None:
    with site.listening() as listener:
        asked = site.start("tool_caller", json.dumps([[name, {}]]), tool_ids=["rich_results"])
        message = site.finish(asked)
        types = [event["type"] for event in listener.told(asked)]
    assert (
        read(last_result(message)) == told
        if told != COMPONENT
        else COMPONENT.items() <= read(last_result(message)).items()
    )
    assert message.get("embeds") == kept.get("embeds")
    assert len(message.get("files") or []) == kept.get("files", 0)
    for field in ("embeds", "files"):
        assert (field in types) is (field in kept)
    named = [source["source"]["name"] for source in message.get("sources") or []]
    assert named == ([f"rich_results/{name}"] if told != "" else [])


def last_result(message: dict[str, Any]) -> Any:
    """Return what the model of the tests was told, which is the end of its answer."""
    content = message["content"]
    start = content.rindex('["') if '["' in content else content.rindex("[]")
    return json.loads(content[start:])[-1]


def read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_a_picture_of_a_tool_is_a_file_of_the_user(site: Site) -> None:
    message = site.ask("tool_caller", '[["picture", {}]]', tool_ids=["rich_results"])
    file = message["files"][0]
    assert file["type"] == "image"
    assert site.call("GET", file["url"]) == (200, "hello")


def test_a_tool_without_citation_gives_no_source(site: Site) -> None:
    message = site.ask("tool_caller", '[["add", {"a": 1}]]', tool_ids=["calculator"])
    assert '["3"]' in message["content"]
    assert not message.get("sources")


def test_what_a_tool_emits_is_kept_in_order(site: Site) -> None:
    message = site.ask("tool_caller", '[["search", {"query": "q"}]]', tool_ids=["tool_settings"])
    assert [status["description"] for status in message["statusHistory"]] == ["Searching q", "Found"]
    assert "https://example.org 1 q" in message["content"]


def test_a_tool_asks_the_user(site: Site) -> None:
    with site.listening() as listener:
        asked = site.start("tool_caller", '[["asks", {}]]', listener.session_id, tool_ids=["rich_results"])
        call = listener.call_of(asked)
        assert call["data"]["type"] == "input"
        site.good("POST", f"/api/v1/events/calls/{call['call_id']}", {"result": "blue"})
        assert '["blue"]' in site.finish(asked)["content"]


def test_a_tool_without_anybody_to_ask_goes_on(site: Site) -> None:
    told = site.run_tools("rich_results", ("asks", {}))
    assert told[0].startswith("cannot get an answer to input")


def test_calls_that_cannot_be_run_are_told_to_the_model(site: Site) -> None:
    told = site.run_tools("calculator", ("unknown", {}), ("add", {}), ("_hidden", {}))
    assert told[0] == 'Error: Tool "unknown" not found.'
    assert "missing 1 required" in told[1]
    assert told[2] == 'Error: Tool "_hidden" not found.'


def test_a_direct_caller_gets_the_calls_unless_it_asks_for_more(site: Site) -> None:
    status, reply = site.complete("tool_caller", '[["add", {"a": 1}]]', tool_ids=["calculator"])
    assert status == 200
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "add"


@pytest.mark.parametrize("name", ["show_passport", "show_passport_plainly"])
def test_a_tool_gets_everything_that_it_asks_for(site: Site, name: str) -> None:
    shown = json.loads(site.run_tools("passport_tool", (name, {"reason": "why"}))[0])
    check_passport(shown, site, "passport_tool", None)
    assert shown["reason"] == "why"
    text = json.dumps([[name, {"reason": "chat"}]])
    asked = site.start("tool_caller", text, "here", tool_ids=["passport_tool"])
    shown = json.loads(last_result(site.finish(asked)))
    check_passport(shown, site, "passport_tool", asked)
    assert shown["__messages__"][0]["role"] == "user"
