"""Tests for gatewayd.pipeline.runs.message_builder."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from gatewayd.completions.deltas import UNNAMED_ERROR
from gatewayd.completions.limits import MAX_KEPT_CHARACTERS, AnswerSizeError
from gatewayd.pipeline.records import ToolStep
from gatewayd.pipeline.runs.message_builder import PART_CHARACTERS, MessageBuilder


def make(*deltas: Any, tags: Any = None) -> MessageBuilder:
    """Return an assembly that was fed deltas, by a clock that goes on two seconds with each look."""
    seconds: Iterator[int] = count(0, 2)
    names: Iterator[int] = count(1)
    assembly = MessageBuilder(tags, clock=lambda: next(seconds), new_id=lambda: str(next(names)))
    for delta in deltas:
        assembly.feed([{"choices": [{"index": 0, "delta": delta}]}])
    return assembly


def test_text_is_put_together() -> None:
    assembly = make({"role": "assistant"}, {"content": "a "}, {"content": "b"}, {})
    assert (assembly.text(), assembly.content()) == ("a b", "a b")
    assert assembly.output() == [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a b"}],
        }
    ]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_shown_as_what_it_is(name: str) -> None:
    assembly = make({name: "why <so>"})
    assert assembly.content() == (
        '<details type="reasoning" done="false">\n<summary>Thinking...</summary>\n'
        "&gt; why &lt;so&gt;\n</details>"
    )
    assembly.feed([{"choices": [{"delta": {"content": "therefore"}}]}])
    assert assembly.content() == (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n'
        "&gt; why &lt;so&gt;\n</details>\ntherefore"
    )
    assert assembly.text() == "therefore"
    assert [item["type"] for item in assembly.output()] == ["reasoning", "message"]
    assert assembly.output()[0]["duration"] == 2


def test_reasoning_within_tags_is_found() -> None:
    assembly = make({"content": "<thi"}, {"content": "nk>why</th"}, {"content": "ink>\n\nso"})
    assembly.finish()
    assert assembly.text() == "so"
    assert "&gt; why" in assembly.content()


def test_tags_that_are_not_wanted_are_text() -> None:
    assembly = make({"content": "<think>why</think>so"}, tags=())
    assert assembly.content() == "<think>why</think>so"


def test_tools_are_shown_once_each() -> None:
    steps = [ToolStep("t1", "find", '{"q": "<a>"}', 'say "x"')]
    assembly = make({"content": "one"})
    assembly.add_steps(steps)
    assembly.add_steps(steps)
    steps.append(ToolStep("t2", "look", "{}", "y", files=({"type": "image"},), embeds=("<p>",)))
    assembly.add_steps(steps)
    content = assembly.content()
    assert content.count('<details type="tool_calls"') == 2
    assert 'arguments="{&quot;q&quot;: &quot;&lt;a&gt;&quot;}"' in content
    assert 'result="&quot;say \\&quot;x\\&quot;&quot;"' in content
    assert 'embeds="[&quot;&lt;p&gt;&quot;]"' in content
    outputs = [item for item in assembly.output() if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in outputs] == ["t1", "t2"]
    assert outputs[1]["embeds"] == ["<p>"]
    assert assembly.text() == "one"


def test_calls_that_nobody_ran_are_items() -> None:
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "t1", "function": {"name": "find", "arguments": '{"q"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
    ]
    assembly = make(*({"tool_calls": [piece]} for piece in pieces))
    call = assembly.output()[0]
    assert (call["type"], call["status"], call["call_id"]) == ("function_call", "in_progress", "t1")
    assert call["arguments"] == '{"q": 1}'
    assembly.add_steps([ToolStep("t1", "find", '{"q": 1}', "r")])
    assert [item["type"] for item in assembly.output()] == ["function_call", "function_call_output"]
    assert assembly.output()[0]["status"] == "completed"


def test_what_is_beside_the_text_is_kept() -> None:
    assembly = make()
    source = {"source": {"name": "s"}, "document": ["d"], "metadata": [{}]}
    assembly.feed(
        [{"sources": [source, "nonsense"]}, {"usage": {"total_tokens": 3}}, {"selected_model_id": "m2"}]
    )
    assembly.feed([{"choices": [], "usage": {"prompt_tokens": 1}}])
    assert assembly.sources == [source]
    assert assembly.usage == {"total_tokens": 3, "prompt_tokens": 1}
    assert assembly.selected == "m2"


def test_pages_that_a_provider_cites_are_sources() -> None:
    page = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}
    assembly = make({"content": "x", "annotations": [page, {"type": "other"}]})
    assert assembly.sources == [
        {
            "source": {"name": "A", "url": "https://a.example"},
            "document": ["A"],
            "metadata": [{"source": "https://a.example", "name": "A"}],
        }
    ]


def test_first_choice_alone_counts() -> None:
    assembly = make()
    assembly.feed([{"choices": [{"index": 1, "delta": {"content": "no"}}, {"delta": {"content": "yes"}}]}])
    assert assembly.text() == "yes"


def test_whole_completion_is_taken() -> None:
    assembly = make()
    message = {"role": "assistant", "content": "<think>w</think>so"}
    assembly.take(
        {"choices": [{"index": 0, "message": message}], "usage": {"total_tokens": 1}, "sources": []}
    )
    assert assembly.text() == "so"
    assert assembly.usage == {"total_tokens": 1}


@pytest.mark.parametrize("nonsense", [None, 1, "x", [], {"choices": 3}, {"choices": [4]}])
def test_nonsense_says_nothing(nonsense: Any) -> None:
    assembly = make()
    assembly.feed([{"choices": nonsense, "usage": nonsense, "sources": nonsense}])
    assert (assembly.content(), assembly.output()) == ("", [])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("a", "a"),
        ({"message": "b"}, "b"),
        ({"detail": {"message": "c"}}, "c"),
        ({"content": "d"}, "d"),
        ({"code": 5}, UNNAMED_ERROR),
        (True, UNNAMED_ERROR),
    ],
)
def test_error_becomes_a_sentence(error: Any, sentence: str) -> None:
    assembly = make()
    assembly.feed([{"error": error}])
    assert assembly.error == sentence


def test_text_over_the_limit_ends_it_with_what_there_is() -> None:
    assembly = make()
    part = "x" * (MAX_KEPT_CHARACTERS // 4)
    with pytest.raises(AnswerSizeError, match=f"its text is over {MAX_KEPT_CHARACTERS} characters"):
        assembly.feed([{"choices": [{"delta": {"content": part}}]}] * 5)
    assembly.finish()
    assert len(assembly.content()) == 4 * len(part)


def test_changes_between_text_and_reasoning_count() -> None:
    assembly = make()
    deltas = [{"content": "x"}, {"reasoning_content": "y"}]
    with pytest.raises(AnswerSizeError):
        for _ in range(MAX_KEPT_CHARACTERS // PART_CHARACTERS):
            assembly.feed([{"choices": [{"delta": delta}]} for delta in deltas])
