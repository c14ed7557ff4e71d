"""Buttons as people write them: what they return, and what of it is kept."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fakes.daemons.plugin_site import Asked, Site, check_passport


@pytest.fixture
def asked(site: Site) -> Asked:
    """A finished answer in a chat."""
    asked = site.start("completion_dict", "hello")
    site.finish(asked)
    return asked


def ids(asked: Asked) -> dict[str, str]:
    return {"chat_id": asked.chat_id, "id": asked.message_id, "session_id": "here"}


def test_a_button_that_returns_nothing_can_tell(site: Site, asked: Asked) -> None:
    assert site.act("noting", **ids(asked)) == (200, None)
    message = site.message(asked)
    assert message["statusHistory"] == [{"description": f"noted {asked.message_id}", "done": True}]
    assert message["sources"] == [{"source": {"name": "n"}, "document": ["d"], "metadata": []}]


@pytest.mark.parametrize(
    ("action", "content"),
    [
        ("menu", "menu some text"),
        ("menu.shorten", "shorten some text"),
        ("menu.lengthen", "lengthen some text"),
        ("menu_of_module.left", "left"),
        ("menu_of_module.right", "right"),
    ],
)
def test_sub_actions_are_called_by_their_id(site: Site, action: str, content: str) -> None:
    assert site.act(action) == (200, {"content": content})


@pytest.mark.parametrize("action", ["menu.nothing", "nobody", "rank_first", "echo"])
def test_what_is_no_button_is_not_found(site: Site, action: str) -> None:
    assert site.act(action)[0] == 404


def test_buttons_are_listed_with_their_models(site: Site) -> None:
    listed = next(item for item in site.good("GET", "/api/models")["data"] if item["id"] == "echo")
    buttons = {item["id"]: item for item in listed["actions"]}
    assert buttons["menu.shorten"]["name"] == "Shorten"
    assert buttons["menu.shorten"]["icon"] == "data:image/png;base64,iVBORw0KGgo="
    assert buttons["menu.lengthen"]["icon"] == "data:image/svg+xml;base64,PHN2Zy8+"
    assert buttons["menu_of_module.left"]["name"] == "Left"
    assert {"noting", "rewrite", "passport_action"} <= buttons.keys()


def test_messages_that_come_back_are_kept(site: Site, asked: Asked) -> None:
    status, reply = site.act("rewrite", "mapping: hello", **ids(asked))
    assert status == 200
    assert reply["messages"][-1]["content"] == "olleh :gnippam"
    assert site.message(asked)["content"] == "olleh :gnippam"


def test_the_body_may_come_back(site: Site, asked: Asked) -> None:
    status, reply = site.act("whole_body", "mapping: hello", **ids(asked))
    assert status == 200
    assert reply["seen"] is True
    assert reply["chat_id"] == asked.chat_id
    assert site.message(asked)["content"] == "mapping: hello"


@pytest.mark.parametrize(
    ("text", "told", "embeds"),
    [
        ("page", {"status": "success", "code": "ui_component"}, ["<h1>chart</h1>"]),
        ("tuple", {"shown": "a chart"}, ["<h1>chart</h1>"]),
        ("plain", None, None),
    ],
)
def test_pages_are_shown_and_kept(
    site: Site, asked: Asked, text: str, told: dict[str, str] | None, embeds: list[str] | None
) -> None:
    with site.listening() as listener:
        status, reply = site.act("show_page", text, **ids(asked))
        assert status == 200
        if told is None:
            assert reply == "<p>source</p>"
        else:
            assert told.items() <= json.loads(reply).items()
            frame = listener.first(lambda frame: frame.get("data", {}).get("type") == "embeds")
            assert frame["data"]["data"]["embeds"] == embeds
    assert site.message(asked).get("embeds") == embeds


def test_html_with_headers_is_shown_and_kept(site: Site, asked: Asked) -> None:
    status, reply = site.act("show_source", "chart", **ids(asked))
    assert (status, json.loads(reply)["code"]) == (200, "ui_component")
    assert site.message(asked)["embeds"] == ["<p>chart</p>"]


def test_a_button_that_fails_says_why(site: Site) -> None:
    status, reply = site.act("failing_button")
    assert (status, reply["detail"]) == (400, "there is nothing to export")


def test_a_button_may_ask(site: Site, asked: Asked) -> None:
    with site.listening() as listener, ThreadPoolExecutor() as others:
        pressed = others.submit(
            site.act, "failing_button", "ask", **{**ids(asked), "session_id": listener.session_id}
        )
        call = listener.call_of(asked)
        site.good("POST", f"/api/v1/events/calls/{call['call_id']}", {"result": "an answer"})
        assert pressed.result() == (200, "an answer")


@pytest.mark.parametrize("action", ["passport_action", "passport_action_plain"])
def test_a_button_gets_everything_that_it_asks_for(site: Site, asked: Asked, action: str) -> None:
    status, reply = site.act(action, **ids(asked))
    assert status == 200
    shown = json.loads(reply["content"])
    check_passport(shown, site, action, asked)
    assert shown["body"]["messages"][-1]["content"] == "some text"
    shown = json.loads(site.act(action, id="", chat_id="", session_id="")[1]["content"])
    check_passport(shown, site, action, None)
