"""Tests for gatewayd.dialects.anthropic.content: turns of blocks as OpenAI messages."""

import pytest

from gatewayd.completions.reasoning_marks import mark_of
from gatewayd.dialects.anthropic.content import OmittedFields, system_messages, to_messages
from gatewayd.errors import ErrorKind, GatewayError

CACHE = {"type": "ephemeral"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QUJD"}}
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/gif;base64,QUJD"}}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def text(said, **fields):
    return {"type": "text", "text": said, **fields}


def user(*content):
    return to_messages([{"role": "user", "content": list(content)}], OmittedFields())


def assistant(*content):
    [message] = to_messages([{"role": "assistant", "content": list(content)}], OmittedFields())
    return message


def result(content, **fields):
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **fields}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, []),
        ("", []),
        ([], []),
        ("a", [{"role": "system", "content": "a"}]),
        ([text("a")], [{"role": "system", "content": "a"}]),
        ([text("a"), "b", text("")], [{"role": "system", "content": "a\nb"}]),
        (
            [text("a"), text("b", cache_control=CACHE)],
            [{"role": "system", "content": [text("a"), text("b", cache_control=CACHE)]}],
        ),
        ([text("a", cache_control=None)], [{"role": "system", "content": "a"}]),
    ],
)
def test_system(system, expected):
    assert system_messages(system, "system") == expected


def test_a_system_turn_stays_where_it_is():
    turns = [{"role": "user", "content": "a"}, {"role": "system", "content": [text("b")]}]
    assert to_messages(turns, OmittedFields()) == [turns[0], {"role": "system", "content": "b"}]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (text("a", cache_control=CACHE), text("a", cache_control=CACHE)),
        (IMAGE, IMAGE_PART),
        ({**IMAGE, "cache_control": CACHE}, {**IMAGE_PART, "cache_control": CACHE}),
        (
            {"type": "image", "source": {"type": "base64", "data": "QUJD"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://acme.test/a"}},
            {"type": "image_url", "image_url": {"url": "https://acme.test/a"}},
        ),
        (
            {
                "type": "document",
                "title": "T",
                "source": {"type": "text", "media_type": "text/plain", "data": "a"},
            },
            text("Document: T\n\na"),
        ),
        (
            {"type": "document", "context": "C", "source": {"type": "content", "content": [text("a")]}},
            text("Context: C\n\na"),
        ),
        ({"type": "document", "source": {"type": "content", "content": "a"}}, text("a")),
        (
            {"type": "document", "source": {"type": "base64", "data": "QUJD"}},
            {
                "type": "file",
                "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,QUJD"},
            },
        ),
        (
            {
                "type": "search_result",
                "title": "T",
                "source": "S",
                "content": [text("a")],
                "cache_control": CACHE,
            },
            text("Search result: T\nSource: S\n\na", cache_control=CACHE),
        ),
    ],
)
def test_blocks_become_parts(block, part):
    [message] = user(text("first"), block)
    assert message == {"role": "user", "content": [text("first"), part]}


def test_a_titled_pdf_says_so():
    source = {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}
    [message] = user({"type": "document", "title": "T.pdf", "context": "C", "source": source})
    assert message["content"][0] == text("Document: T.pdf\nContext: C\n")
    assert message["content"][1]["file"]["filename"] == "T.pdf"


def test_one_text_is_plain():
    assert user(text("a")) == user("a") == [{"role": "user", "content": "a"}]
    assert user(text("")) == user() == [{"role": "user", "content": ""}]


@pytest.mark.parametrize("kind", ["server_tool_use", "web_search_tool_result", "container_upload"])
def test_blocks_of_the_providers_own_tools_are_left_out_and_named(kind):
    omitted = OmittedFields()
    turns = [{"role": "assistant", "content": [{"type": kind}, text("a")]}]
    assert to_messages(turns, omitted) == [{"role": "assistant", "content": "a"}]
    assert f"{kind} blocks" in omitted.sentences()[0]


def test_citations_of_documents_are_named():
    omitted = OmittedFields()
    block = {"type": "document", "citations": {"enabled": True}, "source": {"type": "text", "data": "a"}}
    to_messages([{"role": "user", "content": [block, block]}], omitted)
    assert omitted.sentences() == [
        "cannot convert citations of documents: only a provider that speaks the messages protocol gets it"
    ]


def test_calls_and_thoughts():
    thoughts = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    assert assistant(*thoughts, text(""), USE, {**USE, "id": "t2", "input": {}}) == {
        "role": "assistant",
        "content": None,
        "thinking_blocks": [thoughts[0], thoughts[2]],
        "tool_calls": [CALL, {**CALL, "id": "t2", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert assistant(text("a"), USE) == {"role": "assistant", "content": "a", "tool_calls": [CALL]}
    assert assistant(text("a"), text("b"))["content"] == [text("a"), text("b")]
    assert assistant() == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("signature", "origin"),
    [(None, {}), ("", {}), (mark_of("deepseek"), {"reasoning_origin": "deepseek"})],
)
def test_thinking_of_others(signature, origin):
    """Unsigned thinking is reasoning, of the maker that a mark names."""
    thought = {
        "type": "thinking",
        "thinking": "hm",
        **({} if signature is None else {"signature": signature}),
    }
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    assert assistant(thought, text("a")) == {**message, **origin}


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (result("one"), "one"),
        (result(None), ""),
        (result([]), ""),
        ({"type": "tool_result", "tool_use_id": "t1"}, ""),
        (result([text("a"), text("b")]), "a\nb"),
        (result("bad", is_error=True), "Error: bad"),
        (result("", is_error=True), "Error: "),
        (result("one", cache_control=CACHE), [text("one", cache_control=CACHE)]),
        (result([text("a", cache_control=CACHE)]), [text("a", cache_control=CACHE)]),
        (
            result([{"type": "document", "title": "T", "source": {"type": "text", "data": "a"}}]),
            "Document: T\n\na",
        ),
    ],
)
def test_tool_results(block, content):
    assert user(block) == [{"role": "tool", "tool_call_id": "t1", "content": content}]


def test_results_come_before_what_the_user_says():
    first, second, rest = user(text("go on"), result("one"), {**result("two"), "tool_use_id": "t2"})
    assert (first["tool_call_id"], second["tool_call_id"]) == ("t1", "t2")
    assert rest == {"role": "user", "content": "go on"}


def test_the_images_of_results_come_with_what_the_user_says():
    tool, said = user(result([text("a"), IMAGE], is_error=True), text("go on"))
    assert tool["content"] == "Error: a"
    assert said == {
        "role": "user",
        "content": [text("Returned by tool call t1:"), IMAGE_PART, text("go on")],
    }
    assert user(result([IMAGE]))[0]["content"] == "(see the next message)"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hi", "messages[0]"),
        ({"content": "a"}, "messages[0].role"),
        ({"role": "tool", "content": "a"}, "messages[0].role"),
        ({"role": ["user"], "content": "a"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": {}}, "messages[0].content"),
        ({"role": "system"}, "messages[0].content"),
        ({"role": "system", "content": [IMAGE]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [5]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "wizard"}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        ({"role": "user", "content": ["a", {"type": "image"}]}, "messages[0].content[1].source"),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "x"}}]},
            "messages[0].content[0].source",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]},
            "messages[0].content[0].source.data",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": 1, "data": ""}}],
            },
            "messages[0].content[0].source.media_type",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": ""}}]},
            "messages[0].content[0].source.url",
        ),
        ({"role": "user", "content": [{"type": "document", "source": "a"}]}, "messages[0].content[0].source"),
        ({"role": "user", "content": [{"type": "document", "source": {}}]}, "messages[0].content[0].source"),
        ({"role": "user", "content": [USE]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "thinking", "thinking": "a"}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "messages[0].content[0].tool_use_id"),
        ({"role": "user", "content": [result(5)]}, "messages[0].content[0].content"),
        ({"role": "user", "content": [result([{"type": "x"}])]}, "messages[0].content[0].content[0].type"),
        ({"role": "assistant", "content": [{**USE, "input": "a"}]}, "messages[0].content[0].input"),
        ({"role": "assistant", "content": [{**USE, "input": None}]}, "messages[0].content[0].input"),
        ({"role": "assistant", "content": [{**USE, "name": ""}]}, "messages[0].content[0].name"),
        ({"role": "assistant", "content": [{**USE, "id": None}]}, "messages[0].content[0].id"),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, "messages[0].content[0].thinking"),
        ({"role": "assistant", "content": [{"type": "redacted_thinking"}]}, "messages[0].content[0].data"),
    ],
)
def test_a_wrong_field_is_named(message, param):
    with pytest.raises(GatewayError) as caught:
        to_messages([message], OmittedFields())
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
    assert param in caught.value.message


def test_nothing_left_out_is_no_warning():
    assert OmittedFields().sentences() == []


def test_a_refusal_repeats_no_more_than_the_start():
    with pytest.raises(GatewayError) as caught:
        to_messages([{"role": "user", "content": [{"type": "x" * 9000}]}], OmittedFields())
    assert len(caught.value.message) < 200
