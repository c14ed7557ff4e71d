"""Converts responses of the Responses protocol to OpenAI completions; pure.

The reasoning of the answer is in `reasoning_content`, and encrypted for the next turn in `reasoning_details`,
see the module of that name. Items of tools that ran at the provider have no place in a completion; what they
found is in the text and its annotations.
"""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import check_calls
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.reasoning_details import PARAGRAPH, detail_of, text_of_item

ENDED: Final = frozenset({"completed", "incomplete"})
"""Values of `status` of an answer; `failed` and `cancelled` are none."""

CALLS: Final = frozenset({"function_call", "custom_tool_call"})
"""Types of items that the caller must run."""


def to_completion(response: Mapping[str, Any], created: int, origin: str) -> Body:
    """Return the completion of a response that has ended; `created` is in epoch seconds."""
    refusals: list[str] = []
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Body] = []
    details: list[Body] = []
    annotations: list[Body] = []
    logprobs: list[Any] = []
    length = 0
    for item in map(as_mapping, as_sequence(response.get("output"))):
        if as_text(item.get("type")) in CALLS:
            calls.append(to_call(item))
            check_calls(len(calls))
        elif item.get("type") == "reasoning":
            thoughts.append(text_of_item(item))
            detail = detail_of(item, origin, len(details), len(calls))
            details += [detail] if detail else []
        elif item.get("type") == "message":
            text, refusal = _texts_of(item)
            start = length + len(PARAGRAPH) if length and text else length
            annotations += annotations_of(item, start)
            logprobs += _logprobs_of(item)
            texts += [text] if text else []
            length = start + len(text)
            refusals.append(refusal)
    refused = "".join(refusals)
    content = PARAGRAPH.join(texts) if texts or not (calls or refused) else None
    kept = {
        "refusal": refused,
        "reasoning_content": PARAGRAPH.join(filter(None, thoughts)),
        "reasoning_details": details,
        "tool_calls": calls,
        "annotations": annotations,
    }
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content} | {k: v for k, v in kept.items() if v},
        "logprobs": {"content": logprobs, "refusal": None} if logprobs else None,
        "finish_reason": finish_reason(response, calls=len(calls)),
    }
    return {**head_of(response, created), "object": "chat.completion", "choices": [choice]} | _usage(response)


def head_of(response: Mapping[str, Any], created: int) -> Body:
    """Return the fields of a completion that do not depend on the output."""
    head: Body = {"id": response.get("id"), "created": created, "model": response.get("model")}
    if response.get("service_tier") is not None:
        head["service_tier"] = response["service_tier"]
    return head


def to_call(item: Mapping[str, Any]) -> Body:
    """Return the tool call of an item; a call of a namespace keeps its name."""
    call_id = item.get("call_id") or item.get("id")
    if item.get("type") == "custom_tool_call":
        custom = {"name": item.get("name"), "input": as_text(item.get("input"))}
        return {"id": call_id, "type": "custom", "custom": custom}
    function = {"name": item.get("name"), "arguments": as_text(item.get("arguments")) or "{}"}
    return {"id": call_id, "type": "function", "function": function}


def finish_reason(response: Mapping[str, Any], *, calls: int) -> str:
    """Return why the answer ended: stop, tool_calls, length or content_filter."""
    if response.get("status") == "incomplete":
        reason = as_mapping(response.get("incomplete_details")).get("reason")
        return "content_filter" if reason == "content_filter" else "length"
    return "tool_calls" if calls else "stop"


def failure_of(response: Mapping[str, Any]) -> object:
    """Return the error object of a response that failed, None for one that has ended well."""
    if as_text(response.get("status", "completed")) in ENDED:
        return response.get("error")
    reported = response.get("error")
    status = as_text(response.get("status"))
    return reported or {"message": f"the answer has the status {status!r:.80}", "type": "server_error"}


def to_usage(usage: Mapping[str, Any]) -> Body:
    """Return the usage of a chat completion."""
    sent, received = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    given = as_mapping(usage.get("input_tokens_details"))
    prompt: Body = {"cached_tokens": as_count(given.get("cached_tokens"))}
    if "cache_write_tokens" in given:
        prompt["cache_write_tokens"] = as_count(given["cache_write_tokens"])
    thought = as_count(as_mapping(usage.get("output_tokens_details")).get("reasoning_tokens"))
    return {
        "prompt_tokens": sent,
        "completion_tokens": received,
        "total_tokens": as_count(usage.get("total_tokens")) or sent + received,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def annotations_of(item: Mapping[str, Any], start: int) -> list[Body]:
    """Return the annotations of a message whose text begins at character `start` of the answer."""
    found: list[Body] = []
    for part in map(as_mapping, as_sequence(item.get("content"))):
        found += [to_annotation(each, start) for each in as_sequence(part.get("annotations"))]
        start += len(as_text(part.get("text")))
    return found


def to_annotation(annotation: Any, start: int) -> Body:
    """Return one annotation of a text that begins at character `start`; types other than of pages stay."""
    known = dict(as_mapping(annotation))
    if known.get("type") != "url_citation":
        return known
    del known["type"]
    moved = {
        name: known[name] + start for name in ("start_index", "end_index") if type(known.get(name)) is int
    }
    return {"type": "url_citation", "url_citation": {**known, **moved}}


def _usage(response: Mapping[str, Any]) -> Body:
    usage = response.get("usage")
    return {"usage": to_usage(usage)} if isinstance(usage, dict) else {}


def _texts_of(item: Mapping[str, Any]) -> tuple[str, str]:
    parts = [as_mapping(part) for part in as_sequence(item.get("content"))]
    refusal = "".join(as_text(part.get("refusal")) for part in parts)
    return "".join(as_text(part.get("text")) for part in parts), refusal


def _logprobs_of(item: Mapping[str, Any]) -> list[Any]:
    parts = map(as_mapping, as_sequence(item.get("content")))
    return [entry for part in parts for entry in as_sequence(part.get("logprobs"))]
