"""Converts answers of the native Gemini protocol to OpenAI completions and chunks; pure.

Signatures are in `extra_content.google.thought_signature` of the call or the message that they belong to.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import check_calls
from gatewayd.completions.records import Body
from gatewayd.dialects.gemini.request import SIGNATURE

FINISH_REASONS: Final = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "LANGUAGE": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}

PLAIN_REASONS: Final = frozenset({"STOP", "MAX_TOKENS"})
"""Reasons that `finish_reason` expresses fully."""


class AnswerDecoder:
    """Converts the objects of one stream, in order, to chat.completion.chunk objects.

    `error` holds the error of the stream; a refused prompt is one. The stream has no mark of its end:
    `is_complete` is set by a finish reason, and the usage follows it at the end of the stream.
    """

    def __init__(self, created: int, new_id: Callable[[], str], *, include_usage: bool) -> None:
        self._created = created
        self._new_id = new_id
        self._include_usage = include_usage
        self._head: Body = {}
        self._calls = 0
        self.error: object = None
        self.is_done = False
        self.is_complete = False

    def decode(self, event: Mapping[str, Any]) -> list[Body]:
        """Return the chunks for one object."""
        self.error = event.get("error") or blocked_prompt(event)
        if self.error is not None:
            return []
        chunks: list[Body] = []
        if not self._head:
            self._head = head_of(event, self._created, self._new_id)
            chunks.append(self._chunk({"role": "assistant", "content": ""}))
        candidate = _first_candidate(event)
        for part in map(as_mapping, as_sequence(as_mapping(candidate.get("content")).get("parts"))):
            chunks += [self._chunk(delta) for delta in self._deltas(part)]
        reason = as_text(candidate.get("finishReason"))
        if reason and not self.is_complete:
            self.is_complete = True
            last = self._chunk({})
            last["choices"][0].update(finish_fields(reason, calls=self._calls))
            chunks.append(last)
        if self.is_complete and self._include_usage and isinstance(event.get("usageMetadata"), dict):
            usage = to_usage(event["usageMetadata"])
            chunks.append({**self._chunk({}), "choices": [], "usage": usage})
        return chunks

    def _deltas(self, part: Mapping[str, Any]) -> list[Body]:
        signature = signature_of(part)
        text = as_text(part.get("text"))
        if part.get("thought") is True:
            return [{"reasoning_content": text}] if text else []
        if isinstance(part.get("functionCall"), dict):
            call = {"index": self._calls, **to_call(part, self._new_id)}
            self._calls += 1
            check_calls(self._calls)
            return [{"tool_calls": [call]}]
        if isinstance(part.get("inlineData"), dict):
            return [{"images": [to_image(part["inlineData"])]}]
        delta: Body = {"content": text} if text else {}
        return [delta | signature] if delta or signature else []

    def _chunk(self, delta: Body) -> Body:
        return {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }


def to_completion(answer: Mapping[str, Any], created: int, new_id: Callable[[], str]) -> Body:
    """Return the completion of a whole answer; `created` is in epoch seconds."""
    candidate = _first_candidate(answer)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Body] = []
    images: list[Body] = []
    kept: Body = {}
    for part in map(as_mapping, as_sequence(as_mapping(candidate.get("content")).get("parts"))):
        if part.get("thought") is True:
            thoughts.append(as_text(part.get("text")))
        elif isinstance(part.get("functionCall"), dict):
            calls.append(to_call(part, new_id))
            check_calls(len(calls))
        elif isinstance(part.get("inlineData"), dict):
            images.append(to_image(part["inlineData"]))
        else:
            texts.append(as_text(part.get("text")))
            kept.update(signature_of(part))
    text = "".join(texts)
    message: Body = {"role": "assistant", "content": text if text or not calls else None}
    added = {"reasoning_content": "".join(thoughts), "tool_calls": calls, "images": images}
    message.update({name: value for name, value in added.items() if value})
    choice = {
        "index": 0,
        "message": message | kept,
        "logprobs": None,
        **finish_fields(as_text(candidate.get("finishReason")), calls=len(calls)),
    }
    usage = to_usage(as_mapping(answer.get("usageMetadata")))
    head = head_of(answer, created, new_id)
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def head_of(answer: Mapping[str, Any], created: int, new_id: Callable[[], str]) -> Body:
    """Return the fields of a completion that do not depend on the output."""
    answer_id = as_text(answer.get("responseId")) or f"chatcmpl-{new_id()}"
    return {"id": answer_id, "created": created, "model": answer.get("modelVersion")}


def to_call(part: Mapping[str, Any], new_id: Callable[[], str]) -> Body:
    """Return the tool call of a part, with an id of its own if the provider gave none."""
    function = part["functionCall"]
    arguments = orjson.dumps(as_mapping(function.get("args"))).decode()
    call: Body = {
        "id": as_text(function.get("id")) or f"call_{new_id()}",
        "type": "function",
        "function": {"name": function.get("name"), "arguments": arguments},
    }
    return call | signature_of(part)


def signature_of(part: Mapping[str, Any]) -> Body:
    """Return the field for the signature of a part, which goes back with the call or the text."""
    signature = as_text(part.get("thoughtSignature"))
    return {"extra_content": {"google": {SIGNATURE: signature}}} if signature else {}


def to_image(data: Mapping[str, Any]) -> Body:
    """Return a picture of the answer in the form of providers of chat completions."""
    url = f"data:{as_text(data.get('mimeType')) or 'image/png'};base64,{as_text(data.get('data'))}"
    return {"type": "image_url", "image_url": {"url": url}}


def finish_fields(reason: str, *, calls: int) -> Body:
    """Return the fields of a choice that state why it ended."""
    finish = FINISH_REASONS.get(reason, "stop")
    fields: Body = {"finish_reason": "tool_calls" if calls and finish == "stop" else finish}
    return fields if reason in PLAIN_REASONS or not reason else {**fields, "native_finish_reason": reason}


def blocked_prompt(answer: Mapping[str, Any]) -> Body | None:
    """Return the error for a prompt that the provider refuses to answer, None for an answer."""
    feedback = as_mapping(answer.get("promptFeedback"))
    reason = as_text(feedback.get("blockReason"))
    if not reason or as_sequence(answer.get("candidates")):
        return None
    words = as_text(feedback.get("blockReasonMessage")) or "the prompt was blocked"
    return {"message": f"{words} ({reason})", "code": "content_policy_violation", "status": 400}


def to_usage(usage: Mapping[str, Any]) -> Body:
    """Return OpenAI usage; thoughts count as part of the answer, results of tools as part of the prompt."""
    thought = as_count(usage.get("thoughtsTokenCount"))
    prompt = as_count(usage.get("promptTokenCount")) + as_count(usage.get("toolUsePromptTokenCount"))
    completion = as_count(usage.get("candidatesTokenCount")) + thought
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": as_count(usage.get("totalTokenCount")) or prompt + completion,
        "prompt_tokens_details": {"cached_tokens": as_count(usage.get("cachedContentTokenCount"))},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _first_candidate(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = as_sequence(answer.get("candidates"))
    return as_mapping(candidates[0]) if candidates else {}
