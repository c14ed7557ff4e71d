"""The Ollama dialect for clients, for models of any source; pure.

Requests become OpenAI bodies, completions become one reply of this dialect; `ollama.stream` renders streams.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from gatewayd.catalog.records import Model
from gatewayd.completions.deltas import calls_of, reasoning_of, text_or_refusal_of, usage_of
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import parse_object, whole_calls
from gatewayd.dialects.embeddings import check_count
from gatewayd.dialects.fields import check_arguments, read_list, read_text
from gatewayd.dialects.ollama.messages import ConversationConverter, with_images
from gatewayd.dialects.ollama.options import is_streamed, to_fields, to_tools
from gatewayd.dialects.openai import parse_files
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.pipeline.endpoints import model_of
from gatewayd.pipeline.records import ChatRequest

_REFUSED_FIELDS: Final = ("suffix", "raw")
"""Fields of a generate request that cannot be ignored, because they ask for another kind of answer."""

_UNUSED_FIELDS: Final = ("template", "context", "width", "height", "steps")
"""Fields of a generate request that a model of another source does not use."""


_RUNTIME_FIELDS: Final = ("keep_alive", "truncate", "shift")
"""Fields that only local runtimes take."""


def parse_chat(value: Mapping[str, Any], *, is_local: bool = False) -> ChatRequest:
    """Parse a chat body; raise invalid_request with the name of a bad field.

    With `is_local` a runtime answers, and fields for runtimes stay in the body. A body without messages asks
    to load the model: see `load_reason`.
    """
    warnings: list[str] = []
    conversation = ConversationConverter(warnings)
    messages = read_list(value, "messages")
    check_arguments(messages)
    for index, message in enumerate(messages):
        conversation.add(message, f"messages[{index}]")
    request = _request(value, conversation.messages, warnings, is_local=is_local)
    tools = to_tools(value)
    if tools:
        request.body["tools"] = tools
    return request


def parse_generate(value: Mapping[str, Any], *, is_local: bool = False) -> ChatRequest:
    """Parse a generate body as a chat of one turn; raise invalid_request with the name of a bad field.

    `is_local` is as in `parse_chat`. A body without a prompt asks to load the model: see `load_reason`.
    """
    for name in _REFUSED_FIELDS:
        if value.get(name) and is_local:
            reason = "filters or the model's record turn the request into a chat"
            raise invalid(f"cannot use {name}: {reason}", param=name)
        if value.get(name):
            raise invalid(f"cannot use {name}: this model supports chats, not text completion", param=name)
    warnings = [f"cannot use {name}: this model has its own" for name in _UNUSED_FIELDS if value.get(name)]
    prompt = read_text(value, "prompt", "prompt")
    system = read_text(value, "system", "system")
    messages: list[Body] = []
    if prompt:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": with_images(prompt, value, "images")})
    return _request(value, messages, warnings, is_local=is_local)


def load_reason(request: ChatRequest) -> str | None:
    """Return "load" or "unload" for a request without messages; None for any other request."""
    if request.body["messages"]:
        return None
    keep_alive = request.options.get("keep_alive")
    return "unload" if keep_alive in ("0", "0s") or (keep_alive == 0 and keep_alive is not False) else "load"


def parse_embed(value: Mapping[str, Any], *, is_local: bool = False) -> Body:
    """Return the OpenAI embeddings body of `{"model", "input": text or [text]}`; raise invalid_request.

    An `input` without texts asks to load the model; the reply has no embeddings.
    """
    given = value.get("input")
    texts = [given] if isinstance(given, str) and given else given or []
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise invalid("cannot read input: it is neither a text nor a list of texts", param="input")
    check_count(texts)
    body: Body = {"model": model_of(value), "input": texts, "encoding_format": "float"}
    dimensions = value.get("dimensions")
    if dimensions is not None and dimensions != 0:
        if type(dimensions) is not int or dimensions < 0:
            raise invalid("cannot read dimensions: it is not a whole number", param="dimensions")
        body["dimensions"] = dimensions
    return {**body, **_native(value, ("options", *_RUNTIME_FIELDS))} if is_local else body


def parse_embeddings(value: Mapping[str, Any], *, is_local: bool = False) -> Body:
    """Return the OpenAI embeddings body of `{"model", "prompt"}`; without a prompt `input` is empty."""
    prompt = read_text(value, "prompt", "prompt")
    body = {"model": model_of(value), "input": [prompt] if prompt else [], "encoding_format": "float"}
    return {**body, **_native(value, ("options", *_RUNTIME_FIELDS))} if is_local else body


def _native(value: Mapping[str, Any], names: Sequence[str]) -> Body:
    return {name: value[name] for name in names if value.get(name) is not None}


def _request(
    value: Mapping[str, Any], messages: list[Body], warnings: list[str], *, is_local: bool
) -> ChatRequest:
    model, stream = model_of(value), is_streamed(value)
    fields = to_fields(value, warnings, is_local=is_local)
    body: Body = {"model": model, "messages": messages, "stream": stream, **fields}
    if is_local:
        body |= _native(value, _RUNTIME_FIELDS)
    if stream:
        # The last line of a stream holds the counters.
        body["stream_options"] = {"include_usage": True}
    options = {"keep_alive": value["keep_alive"]} if value.get("keep_alive") is not None else {}
    files = parse_files(value.get("files"))
    return ChatRequest(model=model, body=body, stream=stream, files=files, options=options, warnings=warnings)


@dataclass(frozen=True, slots=True)
class ReplyTiming:
    """Time and duration of an answer.

    `created` is in epoch seconds. `total_ns` and `first_ns` are the nanoseconds from the request to the end
    and to the first chunk; `first_ns` is 0 for an answer that was not streamed.
    """

    created: int
    total_ns: int
    first_ns: int = 0


def render_chat(completion: Mapping[str, Any], model: str, timing: ReplyTiming) -> Body:
    """Return the single reply to a chat request; `model` is the id that the caller sent.

    Raises upstream_failed for a completion without a choice, or with arguments that are no JSON object.
    """
    choice = _choice(completion, model)
    message = as_mapping(choice.get("message"))
    reply: Body = {"role": "assistant", "content": text_or_refusal_of(message)}
    if reasoning_of(message):
        reply["thinking"] = reasoning_of(message)
    calls = render_tool_calls(whole_calls(calls_of(message)))
    if calls:
        reply["tool_calls"] = calls
    return {
        **reply_head(model, timing.created),
        "message": reply,
        **render_logprobs(choice),
        **reply_end(choice.get("finish_reason"), render_counters(completion, timing)),
    }


def render_generate(completion: Mapping[str, Any], model: str, timing: ReplyTiming) -> Body:
    """Return the single reply to a generate request; fields and errors as in `render_chat`."""
    answer = render_chat(completion, model, timing)
    message = answer.pop("message")
    reply = {"response": message.pop("content"), **message}
    del reply["role"]
    return {**reply_head(model, timing.created), **reply, **answer}


def render_load(model: str, reason: str, created: int, *, generate: bool) -> Body:
    """Return the reply to a request for which `load_reason` returned `reason`."""
    reply: Body = {"response": ""} if generate else {"message": {"role": "assistant", "content": ""}}
    return {**reply_head(model, created), **reply, "done": True, "done_reason": reason}


def render_embed(answer: Mapping[str, Any], model: str, timing: ReplyTiming) -> Body:
    """Return the reply to an embed request, made of an OpenAI embeddings reply with lists of numbers."""
    return {
        "model": model,
        "embeddings": _vectors(answer),
        "total_duration": timing.total_ns,
        "load_duration": 0,
        "prompt_eval_count": as_count(as_mapping(answer.get("usage")).get("prompt_tokens")),
    }


def render_embeddings(answer: Mapping[str, Any]) -> Body:
    """Return the reply to an embeddings request: its one vector, or none for an empty prompt."""
    vectors = _vectors(answer)
    return {"embedding": vectors[0] if vectors else []}


def render_error(message: str) -> bytes:
    """Return the line for an error after the first byte; nothing follows it."""
    return orjson.dumps({"error": message}) + b"\n"


def render_tags(models: Iterable[Model]) -> Body:
    """Render the list of models."""
    return {"models": [_tag(model) for model in models]}


def render_show(model: Model, capabilities: Sequence[str] = ("completion", "tools")) -> Body:
    """Render the details of a model, without its template and parameters, which only its source knows."""
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _details(model),
        "model_info": {"general.architecture": model.owned_by, "general.basename": model.name},
        "capabilities": list(capabilities),
        "modified_at": timestamp(model.created),
    }


def reply_head(model: str, created: int) -> Body:
    """Return the first fields of every reply and line."""
    return {"model": model, "created_at": timestamp(created)}


def reply_end(finish_reason: object, counted: Mapping[str, int]) -> Body:
    """Return the fields of a final reply or line; the dialect has only two reasons."""
    return {"done": True, "done_reason": "length" if finish_reason == "length" else "stop", **counted}


def timestamp(created: int) -> str:
    """Return epoch seconds as RFC 3339 text in UTC."""
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_tool_calls(calls: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Render the calls of a `ToolCallAssembler`; raise upstream_failed for arguments that are no object."""
    return [_tool_call(call, index) for index, call in enumerate(calls)]


def render_logprobs(choice: Mapping[str, Any]) -> Body:
    """Return the field for the log probabilities of a choice's tokens, or an empty mapping."""
    found = as_mapping(choice.get("logprobs")).get("content")
    return {"logprobs": found} if isinstance(found, list) and found else {}


def render_counters(answer: Mapping[str, Any], timing: ReplyTiming) -> dict[str, int]:
    """Return the counters of a completion or event; durations are in nanoseconds.

    A runtime's own counts take precedence over the measured ones; unknown token counts are 0.
    """
    usage, timings = usage_of(answer), as_mapping(answer.get("timings"))
    measured = {
        "total_duration": timing.total_ns,
        "load_duration": 0,
        "prompt_eval_count": as_count(usage.get("prompt_tokens")) or as_count(timings.get("prompt_n")),
        "prompt_eval_duration": _nanoseconds(timings.get("prompt_ms")) or timing.first_ns,
        "eval_count": as_count(usage.get("completion_tokens")) or as_count(timings.get("predicted_n")),
        "eval_duration": _nanoseconds(timings.get("predicted_ms")) or timing.total_ns - timing.first_ns,
    }
    return {name: as_count(usage.get(name)) or value for name, value in measured.items()}


def _nanoseconds(milliseconds: object) -> int:
    if isinstance(milliseconds, int | float) and 0 <= milliseconds < 1e9:
        return int(milliseconds * 1e6)
    return 0


def _choice(completion: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    for choice in as_sequence(completion.get("choices")):
        if isinstance(choice, dict):
            return choice
    raise GatewayError(ErrorKind.UPSTREAM_FAILED, f"cannot render the answer of {model!r}: it has no choices")


def _tool_call(call: Mapping[str, Any], index: int) -> Body:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    function = {"index": index, "name": name, "arguments": _arguments(arguments, name)}
    return {"id": call["id"], "function": function}


def _arguments(given: str, name: str) -> Body:
    """Return the arguments as an object, the only form in this dialect."""
    arguments = {} if given.strip() == "null" else parse_object(given)
    if arguments is not None:
        return arguments
    raise GatewayError(
        ErrorKind.UPSTREAM_FAILED,
        f"cannot render the call of tool {name!r:.80}: its arguments are not a whole JSON object",
    )


def _vectors(answer: Mapping[str, Any]) -> list[Any]:
    found = [item for item in as_sequence(answer.get("data")) if isinstance(item, dict)]
    return [item.get("embedding") for item in sorted(found, key=lambda item: as_count(item.get("index")))]


def _tag(model: Model) -> Body:
    """Return an element of the list, with the details that the model's runtime gives, except its name.

    A custom model gets no such details, as they would reveal its base. The digest, by which clients
    distinguish models, is the SHA-256 of the id if the runtime gives none.
    """
    tag: Body = {
        "name": model.id,
        "model": model.id,
        "modified_at": timestamp(model.created),
        "size": 0,
        "digest": hashlib.sha256(model.id.encode("utf-8", "surrogatepass")).hexdigest(),
        "details": _details(model),
    }
    own = {} if model.detail.get("preset") else as_mapping(model.detail.get("ollama"))
    return {**tag, **own, "name": model.id, "model": model.id}


def _details(model: Model) -> Body:
    return {
        "parent_model": "",
        "format": "",
        "family": model.owned_by,
        "families": [model.owned_by],
        "parameter_size": "",
        "quantization_level": "",
    }
