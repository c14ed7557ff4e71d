"""OpenAI's chat completions: the parameters that each family refuses, with the error texts.

`checks(model)` gives the checks of a family, `FAMILIES` a model of each row of the matrix.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fakes.providers.strict.base import Body, Check, StrictRefusalError, openai_error

KNOWN = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "n", "stop", "seed", "user", "store", "metadata"),
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity"),
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"),
        *("service_tier", "prediction", "audio", "modalities", "web_search_options", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "moderation"),
    }
)

SAMPLING = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
)
AT_REST = ("temperature", "top_p", "logprobs")


@dataclass(frozen=True)
class Matrix:
    """One row: the words of effort, the default one, when sampling and tools are taken, further refusals."""

    efforts: tuple[str, ...] = ()
    default: str = "none"
    sampling: str = "yes"
    tools: str = "yes"
    refused: tuple[str, ...] = ()

    @property
    def reasons(self) -> bool:
        """Whether it is a family that reasons at all."""
        return bool(self.efforts) or self.sampling != "yes"


LOW = ("low", "medium", "high")
FAMILIES: dict[str, Matrix] = {
    "gpt-3.5-turbo": Matrix(),
    "gpt-4-0613": Matrix(),
    "gpt-4o-2024-08-06": Matrix(),
    "gpt-4.1-mini": Matrix(),
    "gpt-5-chat-latest": Matrix(),
    "gpt-4o-mini-search-preview": Matrix(refused=("temperature", "top_p", "n")),
    "o1-mini": Matrix(sampling="no", default="medium", refused=("tools", "parallel_tool_calls"), tools="no"),
    "o1": Matrix(LOW, "medium", "no", refused=("parallel_tool_calls",)),
    "o3-mini": Matrix(LOW, "medium", "no", refused=("parallel_tool_calls",)),
    "o3": Matrix(LOW, "medium", "no", refused=("stop",)),
    "o4-mini": Matrix(LOW, "medium", "no", refused=("stop",)),
    "gpt-5": Matrix(("minimal", *LOW), "medium", "no", refused=("stop",)),
    "gpt-5-nano": Matrix(("minimal", *LOW), "medium", "no", refused=("stop",)),
    "gpt-5-codex": Matrix(("minimal", *LOW), "medium", "no", refused=("stop",)),
    "gpt-5.1": Matrix(("none", *LOW), "none", "at rest"),
    "gpt-5.1-codex-max": Matrix(LOW, "medium", "no"),
    "gpt-5.2": Matrix(("none", *LOW, "xhigh"), "none", "at rest"),
    "gpt-5.3-codex": Matrix(("none", *LOW, "xhigh"), "none", "at rest"),
    "gpt-5.3-chat-latest": Matrix(("medium",), "medium", "no"),
    "gpt-5.4": Matrix(("none", *LOW, "xhigh"), "none", "at rest", "at rest"),
    "gpt-5.5": Matrix(("none", *LOW, "xhigh"), "medium", "at rest", "at rest"),
    "gpt-5.6-sol": Matrix(("none", *LOW, "xhigh", "max"), "medium", "at rest", "at rest"),
    "gpt-6-luna": Matrix(("none", *LOW, "xhigh", "max"), "medium", "at rest", "at rest"),
    "gpt-6-astra": Matrix((*LOW, "xhigh", "max"), "medium", "no", "no"),
    "gpt-6.1-sol": Matrix((*LOW, "xhigh"), "medium", "no", "no"),
}


def checks(model: str) -> Sequence[Check]:
    """The checks of a family."""
    row = FAMILIES[model]
    return [known_fields, common_rules, lambda body: check_family(body, model, row)]


def known_fields(body: Body) -> None:
    """Refuse a field that chat completions do not have, and one without a value."""
    for name, value in body.items():
        if name not in KNOWN:
            raise StrictRefusalError(400, openai_error(f"Unrecognized request argument supplied: {name}"))
        if value is None and name in {"tools", "max_tokens", "reasoning_effort"}:
            raise StrictRefusalError(
                400, openai_error(f"Invalid type for '{name}'", param=name, code="invalid_type")
            )


def common_rules(body: Body) -> None:
    """Refuse what no family takes."""
    if not body.get("tools"):
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            if name in body:
                raise invalid_value(name, f"'{name}' is only allowed when 'tools' are specified.")
    if len(body.get("stop") or ()) > 4 and isinstance(body["stop"], list):
        raise invalid_value(
            "stop", "Invalid 'stop': array too long. Expected an array with maximum length 4."
        )
    if "stream_options" in body and not body.get("stream"):
        raise invalid_value(
            "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        )
    if not 0 <= body.get("temperature", 1) <= 2:
        raise invalid_value("temperature", "Invalid 'temperature': decimal above maximum value.")
    for schema, where in _strict_schemas(body):
        problem = _schema_problem(schema)
        if problem:
            raise StrictRefusalError(
                400,
                openai_error(
                    f"Invalid schema for {where}: {problem}", param=where, code="invalid_json_schema"
                ),
            )


def check_family(body: Body, model: str, row: Matrix) -> None:
    """Refuse what a family does not take."""
    _check_effort(body, row)
    _check_sampling(body, row)
    effort = body.get("reasoning_effort", row.default)
    if row.reasons and "max_tokens" in body:
        raise unsupported_parameter("max_tokens", " Use 'max_completion_tokens' instead.")
    for name in row.refused:
        if name in body:
            raise unsupported_parameter(name)
    if "tools" in body and (row.tools == "no" or (row.tools == "at rest" and effort != "none")):
        raise StrictRefusalError(
            400,
            openai_error(
                f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions."
                " Please use /v1/responses instead.",
                param="reasoning_effort",
            ),
        )
    roles = {message["role"] for message in body["messages"]}
    if model.startswith("o1-mini") and roles & {"system", "developer"}:
        text = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
        raise unsupported_value("messages[0].role", text)


def _check_effort(body: Body, row: Matrix) -> None:
    effort = body.get("reasoning_effort", row.default)
    if "reasoning_effort" in body and not row.efforts:
        raise StrictRefusalError(
            400, openai_error("Unrecognized request argument supplied: reasoning_effort")
        )
    if "reasoning_effort" in body and effort not in row.efforts:
        shown = ", ".join(f"'{word}'" for word in row.efforts)
        raise unsupported_value(
            "reasoning_effort",
            f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
            f" Supported values are: {shown}.",
        )


def _check_sampling(body: Body, row: Matrix) -> None:
    effort = body.get("reasoning_effort", row.default)
    at_rest = row.sampling == "at rest" and effort == "none"
    for name in SAMPLING:
        if name in body and row.sampling != "yes" and not (at_rest and name in AT_REST):
            raise unsupported_parameter(name)


def unsupported_parameter(name: str, hint: str = "") -> StrictRefusalError:
    """The refusal of a field."""
    text = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
    return StrictRefusalError(400, openai_error(text, param=name, code="unsupported_parameter"))


def unsupported_value(name: str, text: str) -> StrictRefusalError:
    """The refusal of a value."""
    return StrictRefusalError(400, openai_error(text, param=name, code="unsupported_value"))


def invalid_value(name: str, text: str) -> StrictRefusalError:
    """The refusal of a wrong value."""
    return StrictRefusalError(400, openai_error(text, param=name, code="invalid_value"))


def azure_texts(body: Body) -> None:
    """Refuse as older versions of Azure's service do: without `param`."""
    for name in ("max_tokens", *sorted(body.keys() - KNOWN)):
        if name in body:
            raise StrictRefusalError(
                400,
                {
                    "error": {
                        "message": f"Unrecognized request argument supplied: {name}",
                        "type": "invalid_request_error",
                        "param": None,
                        "code": None,
                    }
                },
            )


def azure_mistral(body: Body) -> None:
    """Refuse what the Mistral models of Azure refuse."""
    for name in ("max_completion_tokens", "reasoning_effort", "seed_", "top_k", "store", "user_"):
        if name in body:
            detail = [
                {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
            ]
            raise StrictRefusalError(422, {"detail": detail})


def _strict_schemas(body: Body) -> list[tuple[Any, str]]:
    found = []
    form = (body.get("response_format") or {}).get("json_schema") or {}
    if form.get("strict"):
        found.append((form.get("schema"), "response_format"))
    for tool in body.get("tools") or ():
        if tool["function"].get("strict"):
            found.append((tool["function"].get("parameters"), "tools"))
    return found


def _schema_problem(schema: Any) -> str:
    if re.search(r'"(oneOf|minLength|maxLength|patternProperties|uniqueItems)":', _json(schema)):
        return "a keyword is not permitted"
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    if set(schema.get("required", ())) != set(schema.get("properties", {})):
        return "'required' is required to be supplied and to be an array including every key in properties."
    return ""


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
