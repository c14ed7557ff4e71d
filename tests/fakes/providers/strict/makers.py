"""Other makers of the chat protocol: the parameters that they refuse, with their error texts.

`MAKERS` maps the setting `maker` to models, each with its checks. Messages are the matter of other modules.
"""

from collections.abc import Callable, Iterable, Mapping

from tests.fakes.providers.strict import minimax as minimax_messages
from tests.fakes.providers.strict.base import Body, Check, StrictRefusalError, openai_error

OPENAI_ONLY = (
    *("verbosity", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "prediction"),
    *("web_search_options", "store", "metadata", "modalities", "audio"),
)
COMMON = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "temperature", "top_p", "max_tokens", "stop", "n"),
        *("presence_penalty", "frequency_penalty", "response_format", "tools", "tool_choice"),
    }
)


def mistral(body: Body) -> None:
    """422 with a list of details."""
    known = COMMON - {"stream_options"} | {
        *(
            "random_seed",
            "safe_prompt",
            "parallel_tool_calls",
            "prompt_mode",
            "reasoning_effort",
            "prediction",
        ),
    }
    _forbid(body, known, _mistral_extra)
    if body.get("reasoning_effort") not in (None, "none", "high"):
        raise _mistral_literal("reasoning_effort", "'none' or 'high'")
    if isinstance(body.get("tool_choice"), dict) or body.get("tool_choice") == "required":
        raise _mistral_literal("tool_choice", "'auto', 'none' or 'any'")
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _mistral_literal("messages", role))


def mistral_without_effort(body: Body) -> None:
    """A model that takes no word of effort."""
    mistral(body)
    if "reasoning_effort" in body:
        raise StrictRefusalError(
            400,
            {
                "object": "error",
                "message": "reasoning_effort is not enabled for this model",
                "type": "invalid",
            },
        )


def groq(body: Body) -> None:
    """`property 'F' is unsupported`."""
    known = COMMON - {"presence_penalty", "frequency_penalty"} | {
        *("max_completion_tokens", "seed", "user", "parallel_tool_calls", "reasoning_effort"),
        *("reasoning_format", "include_reasoning", "service_tier"),
    }
    _forbid(body, known, lambda name: _plain(f"property '{name}' is unsupported"))
    if body.get("n", 1) != 1:
        raise _plain("'n' : number must be at most 1")
    for index, message in enumerate(body["messages"]):
        if "reasoning_content" in message:
            raise _plain(
                f"'messages.{index}' : for 'role:{message['role']}' the following must be satisfied"
                f"[('messages.{index}' : property 'reasoning_content' is unsupported)]"
            )


def groq_plain(body: Body) -> None:
    """A model without reasoning and schemas."""
    groq(body)
    if "reasoning_effort" in body:
        raise _plain("`reasoning_effort` is not supported with this model")
    if (body.get("response_format") or {}).get("type") == "json_schema":
        raise _plain("This model does not support response format `json_schema`.")


def groq_gpt_oss(body: Body) -> None:
    """gpt-oss at Groq."""
    groq(body)
    if body.get("reasoning_effort", "low") not in {"low", "medium", "high"}:
        raise _plain("`reasoning_effort` must be one of `low`, `medium`, or `high`")


def groq_qwen(body: Body) -> None:
    """qwen3 at Groq."""
    groq(body)
    if body.get("reasoning_effort", "none") not in {"none", "default"}:
        raise _plain("`reasoning_effort` must be one of `none` or `default`")


def cerebras(body: Body) -> None:
    """422 with a text for each wrong parameter."""
    known = COMMON - {"presence_penalty", "frequency_penalty"} | {
        *("max_completion_tokens", "seed", "user", "reasoning_effort", "logprobs", "top_logprobs"),
    }
    _forbid(
        body,
        known,
        lambda name: StrictRefusalError(
            422,
            {
                "message": f"body.{name}: property 'body.{name}' is unsupported",
                "type": "invalid_request_error",
                "param": "validation_error",
                "code": "wrong_api_format",
            },
        ),
    )
    if body.get("reasoning_effort", "low") not in {"low", "medium", "high"}:
        raise _plain("reasoning_effort must be one of low, medium, high")


def xai(body: Body) -> None:
    """The error is a text, the field in camelCase."""
    known = COMMON | {
        *("max_completion_tokens", "seed", "user", "parallel_tool_calls", "reasoning_effort", "logprobs"),
        *("top_logprobs", "search_parameters"),
    }
    _forbid(body, known, lambda name: _xai(f"Argument not supported: {name}"))
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _xai(f"Unknown role {role}"))


def xai_reasoning(body: Body) -> None:
    """A reasoning model: no penalties, no stop."""
    xai(body)
    for name, told in (
        ("presence_penalty", "presencePenalty"),
        ("frequency_penalty", "frequencyPenalty"),
        ("stop", "stop"),
        ("reasoning_effort", "reasoningEffort"),
    ):
        if name in body:
            raise _xai(f"Model {body['model']} does not support parameter {told}.")


def vllm(body: Body) -> None:
    """Unknown fields are accepted; words and roles are not."""
    if body.get("reasoning_effort", "low") not in {"low", "medium", "high"}:
        raise _pydantic("reasoning_effort", "Input should be 'low', 'medium' or 'high'")
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _pydantic("messages", f"role {role}"))


def vllm_without_tool_flags(body: Body) -> None:
    """Started without the flags for tools."""
    vllm(body)
    if body.get("tools") and body.get("tool_choice", "auto") == "auto":
        message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        raise StrictRefusalError(
            400, {"object": "error", "message": message, "type": "BadRequestError", "code": 400}
        )


def llamacpp(body: Body) -> None:
    """An object as tool_choice, and templates without the role developer."""
    if not isinstance(body.get("tool_choice", "auto"), str):
        message = "type must be string, but is object"
        raise StrictRefusalError(500, {"error": {"code": 500, "message": message, "type": "server_error"}})
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _plain(f"Unexpected role {role}"))


def lmstudio(body: Body) -> None:
    """Errors are texts."""
    form = (body.get("response_format") or {}).get("type", "text")
    if form not in {"json_schema", "text"}:
        raise StrictRefusalError(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
    if not isinstance(body.get("tool_choice", "auto"), str):
        raise StrictRefusalError(
            400,
            {"error": "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"},
        )
    _no_addresses(
        body, lambda: StrictRefusalError(400, {"error": "'url' field must be a base64 encoded image."})
    )


def ollama(body: Body) -> None:
    """Reads a few fields only; the stand-in refuses what the original drops without a word."""
    known = COMMON - {"n", "tool_choice"} | {
        "seed",
        "logprobs",
        "top_logprobs",
        "reasoning_effort",
        "reasoning",
    }
    _forbid(body, known, lambda name: _plain(f"{name} is dropped without a word"))
    if body.get("reasoning_effort", "none") not in {"none", "low", "medium", "high", "max"}:
        raise _plain(
            f'invalid reasoning value: \'{body["reasoning_effort"]}\' (must be "high", "medium", ...)'
        )
    _no_addresses(body, lambda: _plain("invalid image input"))


def perplexity(body: Body) -> None:
    """No tools, no stop, and an order of turns."""
    known = COMMON - {"stop", "n", "tools", "tool_choice"} | {"reasoning_effort", "web_search_options"}
    _forbid(body, known, lambda name: _plain(f"Unsupported parameter: {name}"))
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _plain(f"Invalid role {role}"))


def kimi(body: Body) -> None:
    """Only one temperature."""
    if body.get("temperature", 1) not in (1, 0.6):
        raise _plain("invalid temperature: only 1 is allowed for this model")
    if body.get("tool_choice", "auto") not in ("auto", "none"):
        raise _plain("tool_choice 'required' is incompatible with thinking enabled")
    if "reasoning_effort" in body:
        raise _plain("invalid reasoning_effort")
    if (body.get("thinking") or {}).keys() - {"type", "keep"}:
        raise _plain("invalid thinking: only type=enabled is allowed for this model")
    for tool in body.get("tools") or ():
        if "strict" in tool["function"]:
            raise _plain("unknown field strict")
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _plain(f"invalid role {role}"))


def dashscope(body: Body) -> None:
    """Thinking in streams only, and a range for the answer."""
    if body.get("enable_thinking", True) is True and not body.get("stream"):
        raise StrictRefusalError(
            400,
            openai_error(
                "parameter.enable_thinking must be set to false for non-streaming calls",
                code="invalid_parameter_error",
            ),
        )
    _forbid_names(body, OPENAI_ONLY[:-2], _plain)


def zai(body: Body) -> None:
    """Neither the role developer nor words of effort."""
    _forbid_names(body, ("store", "reasoning_effort"), _plain)
    if body.get("tool_choice", "auto") != "auto":
        raise _plain("tool_choice only supports auto")
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _plain(f"messages: {role}"))


def gemini(body: Body) -> None:
    """`Unknown name "F"`, one line for each."""
    known = COMMON | {"seed", "logprobs", "top_logprobs", "reasoning_effort", "extra_body"}
    unknown = [name for name in body if name not in known]
    unknown += ["strict" for tool in body.get("tools") or () if "strict" in tool["function"]]
    if unknown:
        lines = "\n".join(
            f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in unknown
        )
        raise StrictRefusalError(
            400, [{"error": {"code": 400, "message": lines, "status": "INVALID_ARGUMENT"}}]
        )


def gemini_3(body: Body) -> None:
    """Penalties and logprobs are off."""
    gemini(body)
    for name in ("presence_penalty", "frequency_penalty", "logprobs"):
        if name in body:
            raise StrictRefusalError(
                400,
                [
                    {
                        "error": {
                            "code": 400,
                            "message": f"{name} is not enabled for this model",
                            "status": "INVALID_ARGUMENT",
                        }
                    }
                ],
            )


def fireworks(body: Body) -> None:
    """`Extra inputs are not permitted, field: 'F', value: V`."""
    for name in (*OPENAI_ONLY, "keep_alive", "options", "repeat_penalty"):
        if name in body and name != "metadata":
            text = f"Extra inputs are not permitted, field: '{name}', value: {body[name]!r}"
            raise StrictRefusalError(400, openai_error(text))


def cohere(body: Body) -> None:
    """The path for clients of OpenAI: unknown fields are refused, ranges and choices are those of Cohere."""
    known = COMMON - {"n"} | {"seed", "reasoning_effort"}
    _forbid(body, known, lambda name: _cohere(f"invalid request: unknown field: {name}"))
    for name in ("temperature", "frequency_penalty", "presence_penalty"):
        value = body.get(name)
        if value is not None and not 0 <= value <= 1:
            raise _cohere(f"invalid request: {name} must be between 0 and 1 inclusive.")
    if body.get("reasoning_effort", "none") not in {"none", "high"}:
        raise _cohere("invalid request: reasoning_effort must be one of 'none', 'high'")
    choice = body.get("tool_choice")
    if choice is not None and choice not in {"none", "required"}:
        raise _cohere("invalid request: tool_choice must be one of 'REQUIRED', 'NONE'")
    _roles(body, {"system", "developer", "user", "assistant", "tool"}, _cohere)


def minimax(body: Body) -> None:
    """Ranges of sampling that end above 0, one choice, and the fields of former functions."""
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is not None and not 0 < value <= 1:
            raise _minimax(f"invalid params, {name} must be in (0, 1]")
    if body.get("n", 1) != 1:
        raise _minimax("invalid params, n only supports 1")
    for name in ("functions", "function_call"):
        if name in body:
            raise _minimax(f"invalid params, {name} is not supported, use tools")
    _roles(body, {"system", "user", "assistant", "tool"}, lambda role: _minimax(f"invalid role: {role}"))


MAKERS: Mapping[str, Mapping[str, Check]] = {
    "mistral": {"mistral-small-latest": mistral, "mistral-large-2512": mistral_without_effort},
    "groq": {"llama-3.3-70b": groq_plain, "openai/gpt-oss-120b": groq_gpt_oss, "qwen/qwen3-32b": groq_qwen},
    "cerebras": {"gpt-oss-120b": cerebras},
    "xai": {"grok-3": xai, "grok-4.20-reasoning": xai_reasoning},
    "vllm": {"qwen3-8b": vllm},
    "llamacpp": {"qwen3-8b": llamacpp},
    "lmstudio": {"qwen3-8b": lmstudio},
    "ollama": {"qwen3:8b": ollama},
    "perplexity": {"sonar-pro": perplexity},
    "kimi": {"kimi-k2.5": kimi},
    "dashscope": {"qwen3-max": dashscope},
    "zai": {"glm-5": zai},
    "gemini": {"gemini-2.5-flash": gemini, "gemini-3-pro-preview": gemini_3},
    "cohere": {"command-a-03-2025": cohere},
    "minimax": {"MiniMax-M2.1": minimax},
    "fireworks": {"accounts/fireworks/models/glm-5": fireworks},
}


def _forbid(body: Body, known: Iterable[str], refusal: Callable[[str], StrictRefusalError]) -> None:
    for name in body:
        if name not in known:
            raise refusal(name)


def _forbid_names(body: Body, names: Iterable[str], refusal: Callable[[str], StrictRefusalError]) -> None:
    for name in names:
        if name in body:
            raise refusal(f"unknown field {name}")


def _roles(body: Body, known: Iterable[str], refusal: Callable[[str], StrictRefusalError]) -> None:
    for message in body["messages"]:
        if message["role"] not in known:
            raise refusal(message["role"])


def _no_addresses(body: Body, refusal: Callable[[], StrictRefusalError]) -> None:
    for message in body["messages"]:
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "image_url" and not part["image_url"]["url"].startswith("data:"):
                raise refusal()


def _plain(text: str) -> StrictRefusalError:
    return StrictRefusalError(400, openai_error(text))


def _xai(text: str) -> StrictRefusalError:
    return StrictRefusalError(400, {"code": "invalid-argument", "error": text})


def _cohere(text: str) -> StrictRefusalError:
    return StrictRefusalError(400, {"id": "r1", "message": text})


def _minimax(text: str) -> StrictRefusalError:
    return minimax_messages.refusal(f"{text} (2013)")


def _pydantic(name: str, text: str) -> StrictRefusalError:
    message = f"[{{'type': 'literal_error', 'loc': ('body', '{name}'), 'msg': \"{text}\"}}]"
    return StrictRefusalError(
        400, {"object": "error", "message": message, "type": "BadRequestError", "code": 400}
    )


def _mistral_extra(name: str) -> StrictRefusalError:
    detail = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
    return StrictRefusalError(
        422, {"object": "error", "message": {"detail": [detail]}, "type": "invalid_request_error"}
    )


def _mistral_literal(name: str, words: str) -> StrictRefusalError:
    detail = {"type": "literal_error", "loc": ["body", name], "msg": f"Input should be {words}"}
    return StrictRefusalError(422, {"detail": [detail]})
