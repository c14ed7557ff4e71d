"""Tests for gatewayd.upstream.tools.identity."""

import re
from dataclasses import replace

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.events.records import EventTarget
from gatewayd.upstream.tools.identity import (
    IdentityHeaders,
    fill_placeholders,
    has_placeholders,
    without_placeholders,
)
from tests.fakes.http.tool_servers import make_scope
from tests.fakes.providers.models import make_actor

HOSTILE = "Ada\r\nX-Evil: 1\x00 Lövelace\u2028"


def named(name: str, email: str = "ada@example.org"):
    actor = make_actor()
    return make_scope(replace(actor, user=replace(actor.user, name=name, email=email)))


def test_tools_are_told_user_chat_and_message_by_both_names() -> None:
    assert IdentityHeaders().for_tool(named("Ada Lovelace")) == {
        "X-OpenWebUI-User-Name": "Ada Lovelace",
        "X-OpenWebUI-User-Id": "u1",
        "X-OpenWebUI-User-Email": "ada@example.org",
        "X-OpenWebUI-User-Role": "admin",
        "X-Service-Chat-Id": "c1",
        "X-OpenWebUI-Chat-Id": "c1",
        "X-Service-Message-Id": "m1",
        "X-OpenWebUI-Message-Id": "m1",
    }


def test_names_of_headers_are_the_administrators() -> None:
    told = IdentityHeaders("A", "B", "C", "D", "E", "F").for_tool(named("Ada"))
    assert told == {"A": "Ada", "B": "u1", "C": "ada@example.org", "D": "admin", "E": "c1", "F": "m1"}


def test_models_are_told_user_and_chat() -> None:
    told = IdentityHeaders("A", "B", "C", "D", "E").for_model(
        CallContext("r", "u", "Ada", "a@b", "user", chat_id="c")
    )
    assert told == {"A": "Ada", "B": "u", "C": "a@b", "D": "user", "E": "c"}


def test_what_is_not_there_is_not_told() -> None:
    scope = make_scope()
    scope.target = EventTarget("u1")
    assert not any("Chat" in name or "Message" in name for name in IdentityHeaders().for_tool(scope))
    assert IdentityHeaders().for_model(CallContext("r", "u")) == {"X-OpenWebUI-User-Id": "u"}


@pytest.mark.parametrize("value", [HOSTILE, "\ud800", "é" * 5000, "\r\n"])
def test_nothing_can_be_injected(value: str) -> None:
    scope = named(value, value)
    scope.target = EventTarget("u1", value, value)
    told = IdentityHeaders().for_tool(scope)
    told |= fill_placeholders({"X": "{{CHAT_ID}} {{USER_NAME}} {{USER_EMAIL}} {{MESSAGE_ID}}"}, scope)
    assert all(" " <= char <= "~" for text in told.values() for char in text)


def test_names_are_quoted_but_for_blanks() -> None:
    told = IdentityHeaders().for_tool(named("Ada L/övelace"))
    assert told["X-OpenWebUI-User-Name"] == "Ada L%2F%C3%B6velace"


def test_placeholders_are_filled() -> None:
    metadata = {"user_message_id": "m0", "user_message": {"id": "m0", "parentId": "p0"}, "user_agent": "curl"}
    actor = make_actor(groups=("g1", "g2"))
    file = {"id": "f1", "name": "a.pdf", "file": {"meta": {"content_type": "application/pdf"}}}
    scope = make_scope(actor, metadata=metadata, task="title_generation", files=[file])
    words = re.findall(
        r"\w+",
        "CHAT_ID MESSAGE_ID USER_MESSAGE_ID USER_MESSAGE_PARENT_ID USER_ID USER_NAME USER_EMAIL USER_ROLE"
        " USER_GROUP_IDS USER_AGENT TASK FILE_ID FILE_NAME FILE_CONTENT_TYPE",
    )
    filled = fill_placeholders({"X": "|".join(f"{{{{{word}}}}}" for word in words)}, scope)
    expected = "c1|m1|m0|p0|u1|u1|u1@example.org|admin|g1,g2|curl|title_generation|f1|a.pdf|application/pdf"
    assert filled == {"X": expected}


def test_unknown_words_stay_and_absent_values_are_empty() -> None:
    headers = {"A": "{{NOPE}}", "B": "x{{FILE_ID}}{{TASK}}y", "C": "plain"}
    assert fill_placeholders(headers, make_scope()) == {"A": "{{NOPE}}", "B": "xy", "C": "plain"}
    # What is put in is not looked at again.
    assert fill_placeholders({"A": "{{USER_NAME}}"}, named("{{USER_ID}}"))["A"] == "%7B%7BUSER_ID%7D%7D"


def test_headers_without_placeholders() -> None:
    assert has_placeholders({"A": "b", "C": "{{CHAT_ID}}"})
    assert not has_placeholders({"A": "b"})
    assert without_placeholders({"A": "b", "C": "{{CHAT_ID}}"}) == {"A": "b"}
