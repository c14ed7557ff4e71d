"""Renders OpenAI chunks, or a whole completion, as the events of a response; pure."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.deltas import (
    ReasoningPiece,
    calls_of,
    delta_of,
    first_choices,
    reasoning_pieces_of,
    text_of,
    usage_of,
)
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason
from gatewayd.completions.tool_call_assembler import ToolCallAssembler
from gatewayd.dialects.responses.envelope import (
    INCOMPLETE_REASONS,
    failure_of,
    render_usage,
    response_object,
)
from gatewayd.dialects.responses.event_writer import EventWriter
from gatewayd.dialects.responses.output import (
    COMPLETED,
    INCOMPLETE,
    CallItem,
    MessageItem,
    OutputItem,
    ReasoningItem,
    to_annotation,
    to_logprobs,
)
from gatewayd.dialects.responses.request import ResponseRequest
from gatewayd.dialects.responses.sealed import ContentSeal
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ids import Clock, NewId

_OWN_CALL_FIELDS: Final = frozenset({"type"})


class ResponseStream:
    """Renders the events of one response; the grouping of chunks into calls of `feed` does not affect them.

    Items are written one after the other: what arrives for a later one waits until the earlier ones have
    ended. `response` is the final response after `finish` or `fail`, and `kept_output` its items with
    `encrypted_content`, which `response` has only if the caller asked for it. `input_tokens` is the estimate
    used if the source gives no usage. Sealed reasoning has the `origin` of the answer
    (`completions.reasoning_marks`). Calls get another id than the `used_ids` of the history.
    """

    def __init__(
        self,
        request: ResponseRequest,
        response_id: str,
        seal: ContentSeal,
        new_id: NewId,
        clock: Clock,
        count_input: Callable[[], int] = lambda: 0,
        used_ids: Collection[str] = (),
    ) -> None:
        self._request = request
        self._seal = seal
        self._new_id = new_id
        self._clock = clock
        self._count_input = count_input
        self._calls = ToolCallAssembler(new_id)
        self._call_items: list[CallItem] = []
        self._call_ids = set(used_ids)
        self._queue: deque[OutputItem] = deque()
        self._message: MessageItem | None = None
        self._usage: Body = {}
        self._reason = ""
        self._characters = 0
        self._has_choice = False
        self._is_started = False
        self.events = EventWriter()
        self.sources: Sequence[Mapping[str, Any]] = ()
        self.origin = ""
        self.response = response_object(response_id, clock(), request.model, request.echo)
        self.output: list[Body] = []
        self.kept_output: list[Body] = []

    @property
    def is_over(self) -> bool:
        """Whether the last event was written."""
        return bool(self.response["status"] != "in_progress")

    def feed_whole(self, completion: Mapping[str, Any]) -> None:
        """Add a whole completion, whose calls are numbered whatever indices the provider gave."""
        for choice in first_choices(completion):
            message = as_mapping(choice.get("message"))
            calls = [call for call in as_sequence(message.get("tool_calls")) if isinstance(call, dict)]
            numbered = [{**call, "index": index} for index, call in enumerate(calls)]
            whole = {**choice, "message": {**message, "tool_calls": numbered}}
            self._chunk({**completion, "choices": [whole]})
            return

    def feed(self, chunks: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the events for chunk objects; b"" if there are none yet."""
        for chunk in chunks:
            self._chunk(chunk)
        return self.events.take()

    def ping(self) -> bytes:
        """Return a keep-alive event; it is preceded by the first events."""
        if self.is_over:
            return b""
        if not self._is_started:
            self._start()
        else:
            self.events.ping()
        return self.events.take()

    def finish(self) -> bytes:
        """Return the events before the last one, which `last` returns; b"" on a second call.

        Raises upstream_failed if no chunk had a choice.
        """
        if self.is_over:
            return b""
        if not self._has_choice:
            raise GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot convert the answer: it has no choice")
        self._start()
        reason = INCOMPLETE_REASONS.get(self._reason)
        status = COMPLETED if reason is None else INCOMPLETE
        self._drain(status)
        self._keep_call_extras()
        self._end(status, {"reason": reason} if reason else None, None)
        return self.events.take()

    def fail(self, error: GatewayError) -> bytes:
        """Return the events before the last one of a broken response, which has no unfinished call."""
        if self.is_over:
            return b""
        self._start()
        self._end_open()
        failure = failure_of(error)
        if failure["code"] == RefusalReason.TOO_LONG:
            # Codex reads the failed response, libraries this event; LangChain knows it by these words.
            message = f"{failure['message']}: the input exceeds the context window of this model"
            told = {"type": "invalid_request_error", **failure, "message": message, "param": "input"}
            self.events.write("error", code=told["code"], message=message, param="input", error=told)
        self._end("failed", None, failure)
        return self.events.take()

    def cancel(self) -> bytes:
        """Return the events before the last one of a cancelled response, which keeps what was written."""
        if self.is_over:
            return b""
        self._start()
        self._end_open()
        self._end("cancelled", None, None)
        return self.events.take()

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        if self.is_over:
            return
        usage = usage_of(chunk)
        if any(as_count(value) for value in usage.values()):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
        for choice in first_choices(chunk):
            self._has_choice = True
            self._start()
            self._reason = as_text(choice.get("finish_reason")) or self._reason
            self._delta(delta_of(choice), to_logprobs(as_mapping(choice.get("logprobs"))))
            self._drain()

    def _delta(self, delta: Mapping[str, Any], logprobs: list[Body]) -> None:
        details = list(as_sequence(delta.get("reasoning_details")))
        for thought in reasoning_pieces_of(delta):
            self._think(thought)
        if details:
            tail = self._queue[-1] if self._queue else None
            item = tail if isinstance(tail, ReasoningItem) else self._reasoning_tail()
            item.content.setdefault("details", []).extend(details)
        for kind, words in (("output_text", text_of(delta)), ("refusal", as_text(delta.get("refusal")))):
            if words:
                self._characters += len(words)
                self._message_tail().add(kind, words, logprobs if kind == "output_text" else ())
        for given in as_sequence(delta.get("annotations")):
            annotation = to_annotation(given)
            if annotation is not None and self._message is not None:
                self._message.add("annotation", annotation)
        for piece in self._calls.add(calls_of(delta)):
            if piece.is_first:
                call = CallItem(piece.call, self._request.names)
                self._queue.append(call)
                self._call_items.append(call)

    def _think(self, thought: ReasoningPiece) -> None:
        tail = self._queue[-1] if self._queue else None
        if thought.data:
            item = ReasoningItem()
            item.content["data"] = thought.data
            self._queue.append(item)
            return
        known = tail.content.get("signature") if isinstance(tail, ReasoningItem) else None
        if thought.signature and thought.signature == known:
            return
        item = self._reasoning_tail()
        # Some providers repeat the whole text beside its signature.
        if thought.text and not (thought.signature and thought.text == item.text):
            item.add(thought.text)
            self._characters += len(thought.text)
        if thought.signature:
            item.content["signature"] = thought.signature

    def _reasoning_tail(self) -> ReasoningItem:
        tail = self._queue[-1] if self._queue else None
        if isinstance(tail, ReasoningItem) and not tail.is_signed:
            return tail
        item = ReasoningItem()
        self._queue.append(item)
        return item

    def _message_tail(self) -> MessageItem:
        tail = self._queue[-1] if self._queue else None
        if not isinstance(tail, MessageItem):
            tail = self._message = MessageItem()
            self._queue.append(tail)
        return tail

    def _start(self) -> None:
        if self._is_started:
            return
        self._is_started = True
        if self.sources:
            self.response["sources"] = list(self.sources)
        self.events.head = dict(self.response)
        self.events.write("response.created", response=self.events.head)
        self.events.write("response.in_progress", response=self.events.head)

    def _drain(self, status: str | None = None) -> None:
        """Write what is ready of the first item, and of the next ones once it has ended; all at the end.

        `status` is the status of the last item, None while more may come.
        """
        is_last = status is not None
        while self._queue:
            item = self._queue[0]
            if is_last and item.is_empty and not item.is_open:
                self._queue.popleft()
                continue
            if not item.is_open:
                if not (is_last or item.is_ready):
                    return
                self._begin(item)
            if not is_last and (len(self._queue) == 1 or not item.is_ended):
                item.flush(self.events)
                return
            self._end_item(item, status if status and len(self._queue) == 1 else COMPLETED)

    def _begin(self, item: OutputItem) -> None:
        if isinstance(item, CallItem):
            given = item.call.id
            item.call_id = given if given and given not in self._call_ids else f"call_{self._new_id()}"
            self._call_ids.add(item.call_id)
        item.begin(self.events, self.response["id"], len(self.output))

    def _end_item(self, item: OutputItem, status: str) -> None:
        extra = {}
        if isinstance(item, ReasoningItem) and (self._request.shows_sealed or self._request.is_stored):
            origin = {"origin": self.origin} if self.origin else {}
            extra["encrypted_content"] = self._seal.close(item.kind, {**item.whole_content(), **origin})
        whole = item.end(self.events, status, **(extra if self._request.shows_sealed else {}))
        self.output.append(whole)
        self.kept_output.append({**whole, **extra})
        self._queue.popleft()

    def _end_open(self) -> None:
        """End the item that is being written, if it is no call."""
        first = self._queue[0] if self._queue else None
        if first is not None and first.is_open and not isinstance(first, CallItem):
            self._end_item(first, INCOMPLETE)

    def _keep_call_extras(self) -> None:
        """Add an item with the opaque members of calls, which a call item has no place for."""
        if not (self._request.shows_sealed or self._request.is_stored):
            return
        extras = {}
        for item in self._call_items:
            extra = {name: value for name, value in item.call.extra.items() if name not in _OWN_CALL_FIELDS}
            if extra and item.call_id:
                extras[item.call_id] = extra
        if extras:
            kept = ReasoningItem()
            kept.content["calls"] = extras
            self._queue.append(kept)
            self._drain(COMPLETED)

    def _end(self, status: str, incomplete: Body | None, error: Body | None) -> None:
        self.response = {
            **self.response,
            "status": status,
            "error": error,
            "incomplete_details": incomplete,
            "output": self.output,
            "usage": None if error else self._rendered_usage(),
            "completed_at": self._clock() if status == COMPLETED else None,
            **({"sources": list(self.sources)} if self.sources else {}),
        }

    def _rendered_usage(self) -> Body:
        estimate = 0 if self._usage else self._count_input()
        return render_usage(self._usage, estimate, self._characters)

    def last(self, *, is_stored: bool) -> bytes:
        """Return the last event; `is_stored` tells whether the response was kept."""
        self.response = {**self.response, "store": is_stored}
        self.events.write(f"response.{self.response['status']}", response=self.response)
        return self.events.take()
