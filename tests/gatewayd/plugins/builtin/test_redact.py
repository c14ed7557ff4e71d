"""The redaction: what is found, what stands for it, and texts that come in pieces."""

import json
import random
from typing import Any

import pytest
from pydantic import ValidationError

from gatewayd.completions.records import CompletionChunk
from gatewayd.plugins.builtin import redact
from gatewayd.plugins.builtin.redact import (
    RULES,
    Filter,
    RedactionSession,
    StreamTail,
    find_matches,
    read_expression,
    read_rules,
)
from gatewayd.plugins.records import PluginFamily
from tests.fakes.plugins.builtin_functions import with_builtin
from tests.fakes.plugins.memory import scope_of

KEY = "sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/\n" * 20
    + "-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dBjftJeZ4CVPmB92K27uhbUJU1p1r"

FOUND = [
    ("emails", "anna.b+x@mail.example.org", "write to {} today"),
    ("emails", "müller@exämple.de", "an {}."),
    ("emails", "a@b.co", "你好{}请"),
    ("phones", "+49 30 1234567", "call {}, please"),
    ("phones", "+1 (212) 555-0123", "call {}"),
    ("phones", "0049 30 1234567", "call {}!"),
    ("phones", "030/123456", "Tel.: {}"),
    ("phones", "(030) 12 34 56", "Tel. {}"),
    ("phones", "212-555-0123", "at {}"),
    ("ibans", "DE89 3704 0044 0532 0130 00", "account {} BIC COBADEFF"),
    ("ibans", "GB29NWBK60161331926819", "account {}."),
    ("ibans", "fr14 2004 1010 0505 0001 3m02 606", "({})"),
    ("credit_cards", "4111 1111 1111 1111", "card {} 12/27"),
    ("credit_cards", "5555-5555-5555-4444", "{}"),
    ("credit_cards", "378282246310005", "no. 17 {}"),
    ("api_keys", KEY, "key={};"),
    ("api_keys", "ghp_" + "a1" * 18, "token {}"),
    ("api_keys", "AKIAIOSFODNN7EXAMPLE", "id {}"),
    ("api_keys", JWT, "cookie {}"),
    ("bearer_tokens", "abcdefghij.klmnop/qrstuv==", "Authorization: Bearer {}"),
    ("private_keys", PEM, "see\n{}\nend"),
    ("ipv4", "192.168.10.7", "host {}."),
    ("ipv6", "2001:db8::8a2e:370:7334", "host {}, port"),
]

NOT_FOUND = [
    "On 01-02-2024 and 2024-05-06 at 12:30:45, version 3.11.2 of 4.5.",
    "The number 1234567890123456 is no card, DE89370400440532013001 no account.",
    "1700000000000 milliseconds, 12345678 pieces, 3.14159265358979",
    "@name and name@ and a@b and user@localhost",
    "sk-short, a bearer of news, ::, 12:30",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
]

ALL = {"ipv4": True, "ipv6": True}


def make(**valves: Any) -> Filter:
    made = Filter()
    made.valves = Filter.Valves(**valves)
    return made


async def asked(made: Filter, *contents: Any, metadata: dict[str, Any] | None = None) -> list[Any]:
    messages = [{"role": "user", "content": content} for content in contents]
    metadata = {} if metadata is None else metadata
    body = await made.inlet({"messages": messages, "metadata": metadata}, metadata)
    return [message["content"] for message in body["messages"]]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


async def said(
    made: Filter, pieces: list[str], metadata: dict[str, Any], field: str = "content"
) -> list[str]:
    events = [await made.stream(delta(**{field: piece}), metadata) for piece in pieces]
    events.append(await made.stream(delta("stop"), metadata))
    return [event["choices"][0]["delta"].get(field, "") for event in events]


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


# What is found --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("valve", "value", "around"), FOUND, ids=lambda value: value[:30])
def test_each_kind_is_found_exactly(valve: str, value: str, around: str) -> None:
    text = around.format(value)
    (found,) = find_matches(text, [RULES[valve]])
    assert text[found[0] : found[1]] == value


@pytest.mark.parametrize(("valve", "value", "around"), FOUND, ids=lambda value: value[:30])
async def test_each_kind_is_hidden_by_its_valve_alone(valve: str, value: str, around: str) -> None:
    off = dict.fromkeys(RULES, False)
    text = around.format(value)
    assert await asked(make(**{**off, valve: True}), text) == [around.format(f"[{RULES[valve].name}_1]")]
    assert await asked(make(**off), text) == [text]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert find_matches(text, list(RULES.values())) == []


def test_a_private_key_without_an_end_is_hidden_to_the_end() -> None:
    session = RedactionSession()
    assert session.mask(f"a {PEM[:200]}", [RULES["private_keys"]]) == "a [PRIVATE_KEY_1]"


def test_a_card_behind_another_number_is_found() -> None:
    text = "order 1234567 4111 1111 1111 1111"
    assert RedactionSession().mask(text, [RULES["credit_cards"]]) == "order 1234567 [CARD_1]"


# Placeholders ---------------------------------------------------------------------------------------------


async def test_the_same_value_has_the_same_placeholder_in_one_request() -> None:
    found = await asked(make(), "a@b.de and c@d.de", "again c@d.de", "and a@b.de")
    assert found == ["[EMAIL_1] and [EMAIL_2]", "again [EMAIL_2]", "and [EMAIL_1]"]
    assert await asked(make(), "c@d.de") == ["[EMAIL_1]"]


async def test_a_placeholder_that_the_user_wrote_stands_for_nothing() -> None:
    made, metadata = make(), {}
    assert await asked(made, "I write [EMAIL_1].", "a@b.de", metadata=metadata) == [
        "I write [EMAIL_1].",
        "[EMAIL_2]",
    ]
    assert "".join(await said(made, ["[EMAIL_1] [EMAIL_2]"], metadata)) == "[EMAIL_1] a@b.de"


async def test_parts_and_arguments_of_calls_are_masked_and_pictures_are_not() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,a@b.de"}}
    call = {"id": "1", "function": {"name": "f", "arguments": '{"to": "a@b.de"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    question = {"role": "user", "content": [{"type": "text", "text": "to a@b.de"}, picture]}
    body = await make().inlet({"messages": [question, message]}, {})
    first, second = body["messages"]
    assert first["content"] == [{"type": "text", "text": "to [EMAIL_1]"}, picture]
    assert second["content"] is None
    assert json.loads(second["tool_calls"][0]["function"]["arguments"]) == {"to": "[EMAIL_1]"}
    assert call["function"]["arguments"] == '{"to": "a@b.de"}'


async def test_requests_do_not_share_values() -> None:
    made = make()
    mine: dict[str, Any] = {}
    yours: dict[str, Any] = {}
    await asked(made, "a@b.de", metadata=mine)
    await asked(made, "c@d.de", metadata=yours)
    assert "".join(await said(made, ["[EMAIL_1]"], yours)) == "c@d.de"
    assert "".join(await said(made, ["[EMAIL_1]"], mine)) == "a@b.de"


async def test_requests_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make()
    now = [0.0]
    made.clock = lambda: now[0]
    await asked(made, "a@b.de")
    now[0] = 3599.0
    await asked(made, "a@b.de")
    assert len(made._sessions) == 2
    now[0] = 3601.0
    await asked(made, "a@b.de")
    assert len(made._sessions) == 2
    monkeypatch.setattr(redact, "MAX_SESSIONS", 1)
    await asked(made, "a@b.de")
    assert len(made._sessions) == 1


# Answers in pieces ----------------------------------------------------------------------------------------


async def test_placeholders_are_restored_wherever_they_are_cut() -> None:
    for size in range(1, 12):
        made, metadata = make(), {}
        await asked(made, "a@b.de or +49 30 1234567", metadata=metadata)
        pieces = await said(made, cut("Write to [EMAIL_1], call [PHONE_1].", size), metadata)
        assert "".join(pieces) == "Write to a@b.de, call +49 30 1234567.", size


async def test_without_the_valve_placeholders_stay() -> None:
    made, metadata = make(restore=False), {}
    await asked(made, "a@b.de", metadata=metadata)
    assert "".join(await said(made, ["Write to [EMAIL_1]."], metadata)) == "Write to [EMAIL_1]."


async def test_an_answer_is_not_searched_when_the_valve_says_so() -> None:
    made, metadata = make(mask_answers=False), {}
    await asked(made, "a@b.de", metadata=metadata)
    pieces = await said(made, cut("[EMAIL_1], c@d.de, [not one", 2), metadata)
    assert "".join(pieces) == "a@b.de, c@d.de, [not one"
    assert pieces[:6] == ["", "", "", "", "a@b.de,", " c"]


@pytest.mark.parametrize(("valve", "value", "around"), FOUND, ids=lambda value: value[:30])
async def test_secrets_of_an_answer_are_hidden_wherever_they_are_cut(
    valve: str, value: str, around: str
) -> None:
    expected = f"First. {around} And then more words.".format(f"[{RULES[valve].name}_1]")
    text = f"First. {around} And then more words.".format(value)
    for size in (1, 2, 3, 5, 7, 11, 40, 1000):
        made, metadata = make(**ALL), {}
        pieces = await said(made, cut(text, size), metadata)
        assert "".join(pieces) == expected, size


async def test_random_cuts_say_what_one_piece_says() -> None:
    rng = random.Random(7)
    values = [around.format(value) for _, value, around in FOUND]
    for _ in range(100):
        text = " ".join(rng.sample([*values, *NOT_FOUND, "Some words.", "1 2 3 (4) 5-6\n\n", "[X_1] [a"], 8))
        whole = await said(make(**ALL), [text], {})
        pieces, at = [], 0
        while at < len(text):
            size = rng.choice((1, 2, 3, 9, 30, 200))
            pieces.append(text[at : at + size])
            at += size
        assert "".join(await said(make(**ALL), pieces, {})) == "".join(whole)


async def test_words_are_said_as_soon_as_the_next_one_begins() -> None:
    pieces = await said(make(), ["Plain", " words", " come", " at", " once. ", "你好"], {})
    assert pieces == ["", "Plain ", "words ", "come ", "at once. ", "你好", ""]


async def test_a_value_of_the_answer_is_not_restored() -> None:
    made, metadata = make(), {}
    await asked(made, "a@b.de", metadata=metadata)
    text = "".join(await said(made, ["[EMAIL_1] a@b.de c@d.de"], metadata))
    assert text == "a@b.de a@b.de [EMAIL_2]"


async def test_a_very_long_secret_is_dropped_to_its_end() -> None:
    for secret, name in ((f"sk-{'x1' * 5000}", "API_KEY"), (PEM.replace("\n\n", "\n" * 9000), "PRIVATE_KEY")):
        pieces = await said(make(), cut(f"It is {secret} and more", 50), {})
        assert "".join(pieces) == f"It is [{name}_1] and more"


async def test_a_very_long_word_that_is_no_secret_passes() -> None:
    picture = f"![x](data:image/png;base64,{'QUJD' * 5000}) and a@b.de."
    pieces = await said(make(), cut(picture, 700), {})
    assert "".join(pieces) == picture.replace("a@b.de", "[EMAIL_1]")
    assert "".join(pieces[:10])


async def test_reasoning_ends_before_the_text_begins() -> None:
    made, metadata = make(), {}
    await made.stream(delta(reasoning_content="I think of a@"), metadata)
    event = await made.stream(delta(content="Well, "), metadata)
    assert event["choices"][0]["delta"] == {"reasoning_content": "a@", "content": "Well, "}


async def test_other_events_pass() -> None:
    made = make()
    for event in (
        {"choices": [], "usage": {"total_tokens": 1}},
        {"sources": []},
        {"choices": [{"index": 0}]},
    ):
        assert await made.stream(dict(event), {}) == event


async def test_arguments_of_calls_are_restored_by_their_valve_alone() -> None:
    value = '{"to": "[EMAIL_1]", "key": "[PRIVATE_KEY_1]"}'
    pieces = cut(value, 4)
    for valve, expected in ((True, {"to": "a@b.de", "key": PEM}), (False, json.loads(value))):
        made, metadata = make(restore_tool_calls=valve), {}
        await asked(made, "a@b.de", PEM, metadata=metadata)
        arguments = ""
        for number, piece in enumerate([*pieces, ""]):
            finish = "tool_calls" if number == len(pieces) else None
            call = {"index": 0, "function": {"arguments": piece}}
            event = await made.stream(delta(finish, tool_calls=[call]), metadata)
            calls = event["choices"][0]["delta"]["tool_calls"]
            arguments += "".join(one["function"]["arguments"] for one in calls)
        assert json.loads(arguments) == expected


# Whole answers --------------------------------------------------------------------------------------------


async def test_an_outlet_restores_and_hides() -> None:
    made, metadata = make(), {}
    await asked(made, "a@b.de", metadata=metadata)
    messages = [
        {"role": "user", "content": "a@b.de"},
        {"role": "assistant", "content": "[EMAIL_1] c@d.de"},
    ]
    body = await made.outlet({"messages": messages}, metadata)
    assert body["messages"][1]["content"] == "a@b.de [EMAIL_2]"
    assert body["messages"][0]["content"] == "a@b.de"


async def test_an_outlet_leaves_what_the_user_wrote_although_it_knows_no_request() -> None:
    messages = [
        {"role": "user", "content": "I am a@b.de"},
        {"role": "assistant", "content": "You are a@b.de, I am c@d.de"},
    ]
    body = await make().outlet({"messages": messages}, {})
    assert body["messages"][1]["content"] == "You are a@b.de, I am [EMAIL_2]"


async def test_an_outlet_of_a_question_changes_nothing() -> None:
    body = {"messages": [{"role": "user", "content": "a@b.de"}]}
    assert await make().outlet(body, {}) == {"messages": [{"role": "user", "content": "a@b.de"}]}


# Own expressions ------------------------------------------------------------------------------------------


async def test_own_expressions_hide_under_their_names() -> None:
    made = make(expressions="EMPLOYEE=E-\\d{6}\nPROJECT=(?i:project) [A-Z]\\w+")
    text = "E-123456 works on project Blue and E-654321 on Project Red."
    assert await asked(made, text) == ["[EMPLOYEE_1] works on [PROJECT_1] and [EMPLOYEE_2] on [PROJECT_2]."]
    for size in (1, 3, 10):
        pieces = await said(make(expressions=made.valves.expressions), cut(text, size), {})
        assert "".join(pieces).startswith("[EMPLOYEE_1] works on [PROJECT_1]")


def test_own_expressions_find_in_long_texts() -> None:
    (rule,) = read_rules("N=<\\d{1,90}>")
    text = "".join(f"{' ' * (at % 97)}<{at}>" for at in range(500))
    assert [text[start:end] for start, end in rule.spans(text)] == [f"<{at}>" for at in range(500)]


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+b",
        "(a|aa)*b",
        "(?:a+){2}",
        "(a)\\1",
        "(?P<x>a)(?P=x)",
        "(?x) (a+) +",
        "a*a*a*b",
        "\\w+\\s+\\w+x",
        "a{1,500}",
        "a{500}",
        "a{200,}",
        "a*",
        "(",
        "[",
        "x" * 501,
    ],
)
def test_expressions_that_may_take_long_are_refused(expression: str) -> None:
    with pytest.raises(ValueError):
        read_expression(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "E-\\d{6}",
        "[A-Z]{2,3}-\\d{4,8}",
        "(?:foo|bar)-\\d+",
        "(?<!\\w)secret(?= )",
        "\\(\\d+\\)",
        "[)+*]x+",
        "\\w+@\\w+",
    ],
)
def test_ordinary_expressions_are_taken(expression: str) -> None:
    assert read_expression(expression).pattern == expression


def test_an_expression_of_brackets_is_read_at_once() -> None:
    with pytest.raises(ValueError):
        read_expression("[" * 1_000_000)


@pytest.mark.parametrize("line", ["no name", "lower=a", "A=", "A=(a+)+"])
def test_a_wrong_line_is_refused_by_the_valves(line: str) -> None:
    with pytest.raises(ValidationError):
        Filter.Valves(expressions=line)


# The door -------------------------------------------------------------------------------------------------


async def test_through_the_door_a_request_keeps_its_values() -> None:
    async with with_builtin("redact") as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "redact")
        scope = scope_of()
        body = {"model": "m", "messages": [{"role": "user", "content": "a@b.de"}], "metadata": scope.metadata}
        changed = await loaded.call("inlet", scope, {"body": body})
        assert changed["messages"][0]["content"] == "[EMAIL_1]"
        chunk = CompletionChunk(events=[delta(content="[EMA"), delta(content="IL_1]"), delta("stop")])
        texts = [
            (await loaded.call("stream", scope, {"event": event}))["choices"][0]["delta"].get("content", "")
            for event in chunk.events
        ]
        assert texts == ["", "", "a@b.de"]
        assert json.dumps(scope.metadata)
        assert "a@b.de" not in json.dumps(scope.metadata)


def test_a_tail_without_rules_holds_placeholders_alone() -> None:
    tail = StreamTail(str, [])
    assert [tail.feed(piece) for piece in ("a ", "b[", "c", "[X", "_1", "] d")] == [
        "a ",
        "b",
        "[c",
        "",
        "",
        "[X_1] d",
    ]
    assert tail.finish() == ""
