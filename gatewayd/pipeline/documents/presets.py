"""Applies a model record to requests for the model: system prompt, parameters and documents.

Parameters of the record override those of the request, as in Open WebUI.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from gatewayd import json_decoder
from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import ModelRecord
from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_mapping
from gatewayd.errors import GatewayError
from gatewayd.pipeline.documents.placeholders import fill_placeholders, local_time, prompt_variables
from gatewayd.pipeline.documents.prompt_context import prepend_to_system
from gatewayd.pipeline.records import ChatRequest

OWN_PARAMS: Final = frozenset(
    {
        "stream_response",
        "stream_delta_chunk_size",
        "function_calling",
        "reasoning_tags",
        "compact_token_threshold",
        "system",
        "note_id",
    }
)
"""Parameters that the gateway reads and never sends to a provider."""

_FIXED: Final = frozenset({"custom_params", "model", "messages", "stream"})

_SYNONYMS: Final = (
    frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict"}),
    frozenset({"repeat_penalty", "repetition_penalty"}),
    frozenset({"reasoning_effort", "reasoning", "think", "thinking"}),
    frozenset({"response_format", "format"}),
    frozenset({"stop", "stop_sequences"}),
)
"""Groups of parameter names that have the same meaning in different protocols."""


def apply_record(
    request: ChatRequest, record: ModelRecord, actor: Actor, clock: Callable[[], datetime] = local_time
) -> None:
    """Add the record's system prompt, parameters and documents to a request."""
    if record.params:
        _apply_params(request, record, actor, clock)
    if record.meta and (references := documents_of(record)):
        sent = {_encoded(item) for item in request.files}
        added = [item for item in references if _encoded(item) not in sent]
        request.files = [*request.files, *added]
        request.model_files = [*request.model_files, *added]


def _encoded(reference: Mapping[str, Any]) -> bytes:
    """Return a reference as JSON, as a key for comparison; b"" if it is not plain JSON."""
    try:
        return orjson.dumps(reference, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return b""


def is_altering(record: ModelRecord | None) -> bool:
    """Return True if a model's record changes the requests to it."""
    if record is None:
        return False
    tools = as_mapping(record.meta).get("toolIds")
    return bool(
        system_prompt_of(record) or merge_params(as_mapping(record.params)) or documents_of(record) or tools
    )


def system_prompt_of(record: ModelRecord) -> str:
    """Return the system prompt of a record with its placeholders; "" if there is none."""
    system = as_mapping(record.params).get("system")
    return system if isinstance(system, str) and system.strip() else ""


def render_system_prompt(
    record: ModelRecord, actor: Actor, sent: Any = None, clock: Callable[[], datetime] = local_time
) -> str:
    """Return the system prompt of a record with its placeholders filled in; "" if there is none.

    `sent` holds the variables that the caller sends.
    """
    system = system_prompt_of(record)
    return fill_placeholders(system, prompt_variables(actor, clock(), sent)) if system else ""


def documents_of(record: ModelRecord) -> Sequence[dict[str, Any]]:
    """Return the references to the documents of a record."""
    return document_references(as_mapping(record.meta).get("knowledge"))


def apply_params(body: dict[str, Any], params: Mapping[str, Any]) -> None:
    """Put parameters of a record into a request; remove the caller's parameters of the same meaning.

    Names are compared case-insensitively and across the names of all protocols.
    """
    synonyms = frozenset[str]().union(*(names for names in _SYNONYMS if not names.isdisjoint(params)))
    replaced = synonyms | params.keys()
    for name in [name for name in body if name.casefold() in replaced]:
        del body[name]
    options = body.get("options")
    if isinstance(options, dict) and not replaced.isdisjoint(map(str.casefold, options)):
        body["options"] = {name: value for name, value in options.items() if name.casefold() not in replaced}
    body.update(params)


def merge_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for the source; the values of custom ones are parsed as JSON if possible."""
    custom = params.get("custom_params")
    found = {name: value for name, value in params.items() if name not in OWN_PARAMS | _FIXED}
    if isinstance(custom, dict):
        parsed = parse_custom_params(custom)
        found |= {name: value for name, value in parsed.items() if name not in OWN_PARAMS | _FIXED}
    return {name: value for name, value in found.items() if value is not None}


def parse_custom_params(custom: Mapping[str, Any]) -> dict[str, Any]:
    """Return custom parameters with the texts that are JSON parsed, as Open WebUI does; other texts stay.

    So do texts that nest too deep, hold an integer of more than 64 bits, or hold too many values.
    """
    texts = [value for value in custom.values() if isinstance(value, str)]
    if not texts or has_too_many_values(*texts):
        return dict(custom)
    return {name: _parsed(value) if isinstance(value, str) else value for name, value in custom.items()}


def document_references(knowledge: Any) -> Sequence[dict[str, Any]]:
    """Return the references in a record's `meta.knowledge`: files, collections and legacy formats."""
    if not isinstance(knowledge, list):
        return []
    found: list[dict[str, Any]] = []
    for item in knowledge:
        if not isinstance(item, dict):
            continue
        names = item.get("collection_names")
        if isinstance(item.get("id"), str):
            found.append({"type": item.get("type") or "collection", "id": item["id"]})
        elif isinstance(item.get("collection_name"), str):
            found.append({"type": "collection", "id": item["collection_name"]})
        elif isinstance(names, list):
            found += [{"type": "collection", "id": name} for name in names if isinstance(name, str)]
    return found


def _apply_params(
    request: ChatRequest, record: ModelRecord, actor: Actor, clock: Callable[[], datetime]
) -> None:
    changes = merge_params(record.params)
    system = render_system_prompt(record, actor, request.options.get("variables"), clock)
    if changes:
        apply_params(request.body, changes)
    if system:
        request.body["messages"] = prepend_to_system(request.body.get("messages") or [], system)
    mode = record.params.get("function_calling")
    if isinstance(mode, str) and mode:
        sent = request.options.get("params")
        request.options["params"] = {"function_calling": mode, **(sent if isinstance(sent, dict) else {})}
    if changes or system:
        # The native body of the request no longer matches.
        request.native = None


def _parsed(text: str) -> Any:
    try:
        return json_decoder.decode_at_once(text.encode("utf-8", "surrogatepass"))
    except GatewayError:
        return text
