"""Converts OpenAI bodies to requests of a local runtime, and its replies to completions and chunks; pure.

The runtime has no `tool_choice`: "none" sends no tools, and a named function is sent alone, but a call cannot
be forced. Fields without a counterpart (`logit_bias`, `parallel_tool_calls`, `user`, `metadata`) are omitted.
`n` above 1, which would change the format of the answer, and images by http URL are refused.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from gatewayd.completions.deltas import reasoning_of
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import check_calls
from gatewayd.completions.records import Body
from gatewayd.dialects.embeddings import refuse_tokens
from gatewayd.dialects.fields import check_arguments, json_schema, parse_arguments, parse_data_url, read_list
from gatewayd.errors import invalid
from gatewayd.ids import NewId

_OPTIONS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "repeat_penalty",
    "repeat_last_n",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_ctx",
    "num_predict",
    "num_keep",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "use_mmap",
    "use_mlock",
)
"""Top-level fields that the runtime takes inside `options`."""

_UNCHANGED_FIELDS = ("keep_alive", "format", "truncate", "shift", "logprobs", "top_logprobs")

_EMBED_FIELDS = ("dimensions", "truncate", "keep_alive", "options")

_COUNTERS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)

_RATES = (("prompt_token/s", "prompt_eval"), ("response_token/s", "eval"))
"""Names of token rates (tokens per second) in usage, and prefixes of the counters behind them."""

_EFFORTS = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
"""Value of `think` for each `reasoning_effort`; the runtime has four levels."""

_ROLES = {"developer": "system", "function": "tool"}
"""Roles that the runtime knows by another name."""


def to_request(body: Mapping[str, Any], *, stream: bool) -> Body:
    """Return the runtime's chat request for an OpenAI chat body; raise invalid_request for a bad field."""
    messages = read_list(body, "messages")
    check_arguments(messages)
    if body.get("n") not in (None, 1):
        raise invalid("cannot ask a local runtime for more than one choice", param="n")
    request: Body = {"model": body.get("model"), "messages": _messages(messages), "stream": stream}
    for name in _UNCHANGED_FIELDS:
        if body.get(name) is not None:
            request[name] = body[name]
    tools = _tools(body)
    if tools:
        request["tools"] = tools
    think = _think(body)
    if think is not None:
        request["think"] = think
    form = _format(body.get("response_format"))
    if form is not None:
        request["format"] = form
    options = _options(body)
    if options:
        request["options"] = options
    return request


def to_completion(reply: Mapping[str, Any], created: int, new_id: NewId) -> Body:
    """Return the OpenAI completion of the runtime's single reply; `created` is in epoch seconds."""
    message = reply.get("message")
    delta = _delta(message if isinstance(message, dict) else {}, 0, new_id)
    for call in delta.get("tool_calls", ()):
        del call["index"]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "", **delta},
        "logprobs": _logprobs(reply),
        "finish_reason": finish_reason(reply.get("done_reason"), called="tool_calls" in delta),
    }
    return {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion",
        "created": created,
        "model": reply.get("model"),
        "choices": [choice],
        "usage": to_usage(reply),
    }


class ReplyDecoder:
    """Converts the replies of one stream, in order, to chat.completion.chunk objects.

    `error` holds the value of an `error` line; `is_complete` and `is_done` are set after the line with
    `done`. With `include_usage` the last chunk holds the usage.
    """

    def __init__(self, created: int, new_id: NewId, *, include_usage: bool) -> None:
        self._id = f"chatcmpl-{new_id()}"
        self._created = created
        self._new_id = new_id
        self._include_usage = include_usage
        self._calls = 0
        self._started = False
        self.error: object = None
        self.is_done = False
        self.is_complete = False

    def decode(self, reply: Mapping[str, Any]) -> list[Body]:
        """Return the chunks of one reply."""
        if reply.get("error"):
            self.error = reply["error"]
            return []
        message = reply.get("message")
        delta = _delta(message if isinstance(message, dict) else {}, self._calls, self._new_id)
        self._calls += len(delta.get("tool_calls", ()))
        check_calls(self._calls)
        if not self._started:
            delta = {"role": "assistant", "content": "", **delta}
            self._started = True
        measured = _logprobs(reply)
        chunks = [self._chunk(reply, delta, None, measured)] if delta or measured else []
        if reply.get("done"):
            chunks += self._end(reply)
        return chunks

    def _end(self, reply: Mapping[str, Any]) -> list[Body]:
        self.is_done = self.is_complete = True
        reason = finish_reason(reply.get("done_reason"), called=self._calls > 0)
        chunks = [self._chunk(reply, {}, reason)]
        if self._include_usage:
            chunks.append({**self._chunk(reply, {}, None), "choices": [], "usage": to_usage(reply)})
        return chunks

    def _chunk(
        self, reply: Mapping[str, Any], delta: Body, reason: str | None, logprobs: Body | None = None
    ) -> Body:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": reply.get("model"),
            "choices": [choice],
        }


def finish_reason(done_reason: object, *, called: bool) -> str:
    """Return the OpenAI finish reason of a done reason; a reply with tool calls ends with "tool_calls"."""
    if called:
        return "tool_calls"
    return "length" if done_reason == "length" else "stop"


def to_usage(reply: Mapping[str, Any]) -> Body:
    """Return OpenAI usage and the runtime's own counters (durations in nanoseconds, tokens per second)."""
    prompt = as_count(reply.get("prompt_eval_count"))
    completion = as_count(reply.get("eval_count"))
    usage: Body = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    usage.update({name: reply[name] for name in _COUNTERS if name in reply})
    for name, counter in _RATES:
        nanoseconds = as_count(reply.get(f"{counter}_duration"))
        if nanoseconds:
            usage[name] = round(as_count(reply.get(f"{counter}_count")) * 1e9 / nanoseconds, 2)
    return usage


def to_embed(body: Mapping[str, Any]) -> Body:
    """Return the runtime's embed request for an OpenAI embeddings body; raise invalid_request.

    The runtime takes texts only. It truncates long texts unless the caller sends `truncate: false`.
    """
    given = body.get("input")
    texts = [given] if isinstance(given, str) else read_list(body, "input")
    refuse_tokens(texts)
    request: Body = {"model": body.get("model"), "input": texts}
    for name in _EMBED_FIELDS:
        if body.get(name) is not None:
            request[name] = body[name]
    return request


def from_embed(answer: Mapping[str, Any], model: str) -> Body:
    """Return the OpenAI embeddings reply for the runtime's.

    Raises ValueError with the reason if the reply has no list of vectors.
    """
    vectors = answer.get("embeddings")
    if not isinstance(vectors, list) or not all(isinstance(vector, list) for vector in vectors):
        raise ValueError("its answer has no list of 'embeddings'")
    data = [
        {"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)
    ]
    tokens = as_count(answer.get("prompt_eval_count"))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _delta(message: Mapping[str, Any], first_call: int, new_id: NewId) -> Body:
    delta: Body = {}
    if as_text(message.get("content")):
        delta["content"] = message["content"]
    if as_text(message.get("thinking")):
        delta["reasoning_content"] = message["thinking"]
    calls = [call for call in as_sequence(message.get("tool_calls")) if isinstance(call, dict)]
    if calls:
        delta["tool_calls"] = [_tool_call(call, first_call + i, new_id) for i, call in enumerate(calls)]
    return delta


def _tool_call(call: Mapping[str, Any], index: int, new_id: NewId) -> Body:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments or {}).decode()
    return {
        "index": index,
        "id": call.get("id") or f"call_{new_id()}",
        "type": "function",
        "function": {"name": function.get("name"), "arguments": arguments},
    }


def _logprobs(reply: Mapping[str, Any]) -> Body | None:
    tokens = as_sequence(reply.get("logprobs"))
    return {"content": tokens, "refusal": None} if tokens else None


def _tools(body: Mapping[str, Any]) -> list[Any]:
    """Return the tools that the model may call."""
    tools, choice = read_list(body, "tools"), body.get("tool_choice")
    if choice == "none":
        return []
    name = as_mapping(as_mapping(choice).get("function")).get("name")
    if name is None:
        return tools
    chosen = [tool for tool in tools if as_mapping(as_mapping(tool).get("function")).get("name") == name]
    if not chosen:
        raise invalid(f"cannot choose tool {name!r:.80}: it is not among the tools", param="tool_choice")
    return chosen


def _messages(messages: list[Any]) -> list[Body]:
    converted = []
    names: dict[str, Any] = {}
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot read {where}: it is not an object", param=where)
        converted.append(_message(message, where, names))
    return converted


def _message(message: Mapping[str, Any], where: str, names: dict[str, Any]) -> Body:
    """Convert one message; `names` maps tool call ids to function names."""
    role = message.get("role")
    text, images = _content(message.get("content"), f"{where}.content")
    converted: Body = {"role": _ROLES.get(as_text(role), role), "content": text}
    if images:
        converted["images"] = images
    thoughts = reasoning_of(message)
    if thoughts:
        converted["thinking"] = thoughts
    calls = read_list(message, "tool_calls", f"{where}.tool_calls")
    if calls:
        converted["tool_calls"] = [
            _call(call, f"{where}.tool_calls[{index}]", names) for index, call in enumerate(calls)
        ]
    if converted["role"] == "tool":
        name = names.get(as_text(message.get("tool_call_id"))) or message.get("name")
        if name:
            converted["tool_name"] = name
        if message.get("tool_call_id"):
            converted["tool_call_id"] = message["tool_call_id"]
    return converted


def _call(call: Any, where: str, names: dict[str, Any]) -> Body:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise invalid(f"cannot read {where}: it has no function", param=where)
    names[as_text(call.get("id"))] = function.get("name")
    arguments = parse_arguments(function.get("arguments"), f"{where}.function.arguments")
    converted: Body = {"function": {"name": function.get("name"), "arguments": arguments}}
    if call.get("id"):
        converted["id"] = call["id"]
    return converted


def _content(content: Any, where: str) -> tuple[str, list[str]]:
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise invalid(f"cannot read {where}: it is neither text nor a list of parts", param=where)
    texts: list[str] = []
    images: list[str] = []
    for index, part in enumerate(content):
        _add_part(part, f"{where}[{index}]", texts, images)
    return "\n".join(texts), images


def _add_part(part: Any, where: str, texts: list[str], images: list[str]) -> None:
    match part:
        case str(text) | {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            texts.append(text)
        case {"type": "image_url", "image_url": {"url": url} | str(url)}:
            images.append(_image(url, where))
        case {"type": kind}:
            raise invalid(f"cannot send a {kind!r:.80} part to a local runtime", param=f"{where}.type")
        case _:
            raise invalid(f"cannot read {where}: it is not a part with a type", param=where)


def _image(url: object, where: str) -> str:
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        raise invalid(f"cannot send {where}: a local runtime takes images as data URLs only", param=where)
    return parse_data_url(url, where)[1]


def _options(body: Mapping[str, Any]) -> Body:
    """Return the runtime's options; the caller's own `options` take precedence."""
    options = {name: body[name] for name in _OPTIONS if body.get(name) is not None}
    if body.get("repetition_penalty") is not None:
        options.setdefault("repeat_penalty", body["repetition_penalty"])
    for name in ("max_completion_tokens", "max_tokens"):
        if body.get(name) is not None:
            options.setdefault("num_predict", body[name])
    stop = body.get("stop")
    if stop:
        options["stop"] = [stop] if isinstance(stop, str) else stop
    own = body.get("options")
    return {**options, **own} if isinstance(own, dict) else options


def _think(body: Mapping[str, Any]) -> Any:
    if body.get("think") is not None:
        return body["think"]
    effort = body.get("reasoning_effort")
    return _EFFORTS.get(effort) if isinstance(effort, str) else None


def _format(response_format: object) -> Any:
    kind = as_mapping(response_format).get("type")
    if kind == "json_object":
        return "json"
    schema = json_schema(response_format)
    if kind == "json_schema" and not isinstance(schema, dict):
        where = "response_format.json_schema.schema"
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    return schema
