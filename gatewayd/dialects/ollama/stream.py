"""Renders OpenAI chunks as the lines of an Ollama reply; pure."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCallAssembler
from gatewayd.dialects.ollama.dialect import (
    ReplyTiming,
    render_counters,
    render_error,
    render_logprobs,
    render_tool_calls,
    reply_end,
    reply_head,
)
from gatewayd.errors import GatewayError


class ChatLines:
    """Renders the OpenAI events of one stream, in order, as lines of a chat or generate reply.

    Text and reasoning are sent immediately. The dialect has no partial tool calls: whole calls are sent in
    one line before the last. After an error line nothing follows, and `is_failed` is set. `sources`
    (citations, gatewayd-documents(7), CHAT REQUESTS) are part of the first line.
    """

    def __init__(
        self,
        model: str,
        *,
        generate: bool,
        clock: ids.Clock = ids.now,
        sources: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._sources = sources
        self._model = model
        self._generate = generate
        self._clock = clock
        self._calls = ToolCallAssembler()
        self._measured: Body = {}
        self._reason: Any = None
        self.is_failed = False

    def feed(self, events: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the lines for the next events, often none."""
        return b"".join(self._event(event) for event in events if not self.is_failed)

    def finish(self, timing: ReplyTiming) -> bytes:
        """Return the last lines: the tool calls, and the reason with the counters.

        The result is an error line if the arguments of a tool call are no whole JSON object.
        """
        if self.is_failed:
            return b""
        try:
            calls = render_tool_calls(self._calls.calls())
        except GatewayError as error:
            return self._fail(error.message)
        line = self._line("", timing.created, {"tool_calls": calls}) if calls else b""
        last = reply_end(self._reason, render_counters(self._measured, timing))
        return line + self._line("", timing.created, {}, last)

    def _event(self, event: Mapping[str, Any]) -> bytes:
        if event.get("error"):
            return self._fail(sentence_of(event["error"]))
        usage = usage_of(event)
        if usage:
            self._measured["usage"] = {**self._measured.get("usage", {}), **usage}
        if as_mapping(event.get("timings")):
            self._measured["timings"] = event["timings"]
        return b"".join(map(self._choice, first_choices(event)))

    def _choice(self, choice: Mapping[str, Any]) -> bytes:
        delta = delta_of(choice)
        self._calls.add(calls_of(delta))
        self._reason = choice.get("finish_reason") or self._reason
        text = text_or_refusal_of(delta)
        thoughts = reasoning_of(delta)
        measured = render_logprobs(choice)
        if not (text or thoughts or measured):
            return b""
        return self._line(text, self._clock(), {"thinking": thoughts} if thoughts else {}, measured)

    def _line(self, text: str, created: int, extra: Body, rest: Mapping[str, Any] | None = None) -> bytes:
        if self._generate:
            reply: Body = {"response": text, **extra}
        else:
            reply = {"message": {"role": "assistant", "content": text, **extra}}
        line = {**reply_head(self._model, created), **reply, "done": False, **(rest or {})}
        if self._sources:
            line["sources"], self._sources = list(self._sources), ()
        return orjson.dumps(line) + b"\n"

    def _fail(self, message: str) -> bytes:
        self.is_failed = True
        return render_error(message)
