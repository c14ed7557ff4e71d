"""Assembles the stored form of an answer from text, reasoning and tool calls; pure."""

import html
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.completions.deltas import (
    calls_of,
    delta_of,
    first_choices,
    reasoning_of,
    sentence_of,
    text_or_refusal_of,
    usage_of,
)
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.limits import MAX_KEPT_CHARACTERS, AnswerSizeError
from gatewayd.completions.reasoning_tags import ReasoningSplitter
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCallAssembler
from gatewayd.pipeline.records import ToolStep

PART_CHARACTERS: Final = 2048
"""Number of characters that each change between text and reasoning counts as, for its markup."""


@dataclass(slots=True)
class _TextPart:
    """A block of text or reasoning; `seconds` is the duration of the reasoning."""

    id: str
    pieces: list[str] = field(default_factory=list)
    is_reasoning: bool = False
    began: float = 0.0
    seconds: int | None = None

    @property
    def whole(self) -> str:
        """The whole text of the block."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


@dataclass(frozen=True, slots=True)
class _ToolCallPart:
    """A tool call that was run."""

    id: str
    step: ToolStep


class MessageBuilder:
    """The parts of one answer, in the order of their arrival.

    `content` renders reasoning and tool calls as `<details>` elements inside the text, `output` renders each
    as an item, both as in Open WebUI. `usage`, `sources`, `error` (a sentence) and `selected` (the model that
    was chosen) are the last values from the source. Text over `MAX_KEPT_CHARACTERS` raises AnswerSizeError.
    """

    def __init__(
        self,
        tags: Sequence[tuple[str, str]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        new_id: ids.NewId = ids.new_id,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._parts: list[_TextPart | _ToolCallPart] = []
        self._calls = ToolCallAssembler(new_id)
        self._splitter = ReasoningSplitter(tags)
        self._run_ids: set[str] = set()
        self._known_steps = 0
        self._size = 0
        self.usage: dict[str, Any] = {}
        self.sources: list[dict[str, Any]] = []
        self.error: str | None = None
        self.selected: str | None = None

    def feed(self, events: Sequence[Body]) -> None:
        """Add the events of one chunk."""
        for event in events:
            self._feed(event)

    def take(self, body: Mapping[str, Any]) -> None:
        """Add a whole completion."""
        self._feed(body)
        self.finish()

    def finish(self) -> None:
        """Close the open parts at the end of the answer."""
        for is_reasoning, piece in self._splitter.finish():
            self._add(piece, is_reasoning=is_reasoning)
        self._end_reasoning()

    def add_steps(self, steps: Sequence[ToolStep]) -> None:
        """Add the tool calls that were run since the last call."""
        for step in steps[self._known_steps :]:
            self._end_reasoning()
            self._run_ids.add(step.id)
            self._parts.append(_ToolCallPart(self._new_id(), step))
        self._known_steps = len(steps)

    def text(self) -> str:
        """Return the text without reasoning and tool calls."""
        return "".join(part.whole for part in self._texts() if not part.is_reasoning).strip()

    def content(self) -> str:
        """Return the content of the message, with markup."""
        return "".join(_render(part) for part in self._parts).strip()

    def output(self) -> list[dict[str, Any]]:
        """Return the items of the answer (the `output` of Open WebUI's messages)."""
        items = [item for part in self._parts for item in _items(part)]
        unanswered = [call for call in self._calls.calls() if call["id"] not in self._run_ids]
        return items + [_open_call_item(call) for call in unanswered]

    def _feed(self, event: Mapping[str, Any]) -> None:
        self.usage = {**self.usage, **usage_of(event)}
        self.sources += [source for source in as_sequence(event.get("sources")) if isinstance(source, dict)]
        self.selected = as_text(event.get("selected_model_id")) or self.selected
        if event.get("error"):
            self.error = sentence_of(event["error"])
        for choice in first_choices(event):
            self._feed_delta(delta_of(choice))

    def _feed_delta(self, delta: Mapping[str, Any]) -> None:
        self._add(reasoning_of(delta), is_reasoning=True)
        for is_reasoning, piece in self._splitter.feed(text_or_refusal_of(delta)):
            self._add(piece, is_reasoning=is_reasoning)
        self._calls.add(calls_of(delta))
        self.sources += [
            _citation_source(item) for item in as_sequence(delta.get("annotations")) if _is_citation(item)
        ]

    def _add(self, piece: str, *, is_reasoning: bool) -> None:
        if not piece:
            return
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _TextPart) or last.is_reasoning is not is_reasoning:
            self._end_reasoning()
            last = _TextPart(self._new_id(), is_reasoning=is_reasoning, began=self._clock())
            self._parts.append(last)
            self._size += PART_CHARACTERS
        last.pieces.append(piece)
        self._size += len(piece)
        if self._size > MAX_KEPT_CHARACTERS:
            raise AnswerSizeError(f"its text is over {MAX_KEPT_CHARACTERS} characters")

    def _end_reasoning(self) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _TextPart) and last.is_reasoning and last.seconds is None:
            last.seconds = round(self._clock() - last.began)

    def _texts(self) -> Sequence[_TextPart]:
        return [part for part in self._parts if isinstance(part, _TextPart)]


def _render(part: _TextPart | _ToolCallPart) -> str:
    if isinstance(part, _ToolCallPart):
        return _render_call(part.step)
    if not part.is_reasoning:
        return part.whole
    lines = part.whole.strip().split("\n")
    quoted = html.escape(
        "\n".join(line if line.startswith(">") else f"> {line}" for line in lines), quote=False
    )
    if part.seconds is None:
        head, summary = 'done="false"', "Thinking..."
    else:
        head, summary = f'done="true" duration="{part.seconds}"', f"Thought for {part.seconds} seconds"
    return f'\n<details type="reasoning" {head}>\n<summary>{summary}</summary>\n{quoted}\n</details>\n'


def _render_call(step: ToolStep) -> str:
    values = {
        "id": step.id,
        "name": step.name,
        "arguments": step.arguments,
        "result": _json(step.result),
        "files": _json(step.files) if step.files else "",
        "embeds": _json(step.embeds) if step.embeds else "",
    }
    fields = " ".join(f'{name}="{html.escape(value)}"' for name, value in values.items())
    return (
        f'\n<details type="tool_calls" done="true" {fields}>\n<summary>Tool Executed</summary>\n</details>\n'
    )


def _items(part: _TextPart | _ToolCallPart) -> Sequence[dict[str, Any]]:
    if isinstance(part, _ToolCallPart):
        step = part.step
        result: dict[str, Any] = {
            "type": "function_call_output",
            "id": f"fco_{part.id}",
            "call_id": step.id,
            "output": [{"type": "input_text", "text": step.result}],
            "status": "completed",
        }
        if step.files:
            result["files"] = list(step.files)
        if step.embeds:
            result["embeds"] = list(step.embeds)
        return (_call_item(f"fc_{part.id}", step.id, step.name, step.arguments, "completed"), result)
    content = [{"type": "output_text", "text": part.whole.strip()}]
    if part.is_reasoning:
        done = {"status": "in_progress"} if part.seconds is None else {"status": "completed"}
        return ({"type": "reasoning", "id": f"r_{part.id}", **done, "content": content, "summary": None,
                 "duration": part.seconds},)  # fmt: skip
    if not part.whole.strip():
        return ()
    return ({"type": "message", "id": f"msg_{part.id}", "status": "completed", "role": "assistant",
             "content": content},)  # fmt: skip


def _open_call_item(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of a tool call that the gateway did not run."""
    function = as_mapping(call.get("function"))
    name, arguments = as_text(function.get("name")), as_text(function.get("arguments"))
    return _call_item(f"fc_{call['id']}", call["id"], name, arguments, "in_progress")


def _call_item(item_id: str, call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": status,
    }


def _is_citation(item: object) -> bool:
    return bool(as_mapping(as_mapping(item).get("url_citation")).get("url"))


def _citation_source(item: object) -> dict[str, Any]:
    """Return a source for a page that the provider cites."""
    page = as_mapping(as_mapping(item).get("url_citation"))
    url = str(page["url"])
    name = as_text(page.get("title")) or url
    return {
        "source": {"name": name, "url": url},
        "document": [as_text(page.get("content")) or name],
        "metadata": [{"source": url, "name": name}],
    }


def _json(value: object) -> str:
    return orjson.dumps(value, default=str).decode("utf-8")
