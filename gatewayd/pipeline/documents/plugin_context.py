"""The plugin context of a chat request (gatewayd-plugins(7), PARAMETERS), made of its fields; pure."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.copies import copy_json
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.documents.model_info import describe_model
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.runtime.call_depth import current_depth
from gatewayd.plugins.runtime.context import CallScope, RequestFacts

OWN_FIELDS: Final = frozenset(
    {
        "files",
        "chat_id",
        "id",
        "message_ids",
        "session_id",
        "parent_id",
        "user_message",
        "parent_message",
        "assistant_message_id",
        "regeneration_prompt",
        "background_tasks",
        "features",
        "variables",
        "chat_variables",
        "filter_ids",
        "tool_ids",
        "tool_servers",
        "skill_ids",
        "terminal_id",
        "folder_id",
        "params",
        "model_item",
        "new_chat",
        "execute_tools",
    }
)
"""Fields of a chat request that only the gateway reads, never a provider; named as in Open WebUI."""

CHAT_FIELDS: Final = frozenset({"chat_id", "id", "message_ids", "session_id", "parent_id"})
"""Those of them that name a stored chat or message; plugins get them only for a chat of the caller."""

PLUGIN_PARAMS: Final = (
    "stream_delta_chunk_size",
    "reasoning_tags",
    "compact_token_threshold",
    "function_calling",
)
"""Parameters of the gateway that plugins can see."""


def make_scope(request: ChatRequest, model: Model, record: ModelRecord | None, actor: Actor) -> CallScope:
    """Return the plugin context of a request.

    The caller must have checked that a stored chat belongs to the actor. Missing chat and message ids become
    "".
    """
    options = request.options
    target = target_of(options, actor, request.request_id)
    facts = request.facts() if request.facts else RequestFacts()
    described = describe_model(model, record)
    messages = request.body.get("messages")
    return CallScope(
        actor=actor,
        target=target,
        facts=facts,
        metadata=_metadata(request, target, facts, described),
        model=described,
        files=request.files or None,
        messages=messages if isinstance(messages, list) else None,
        level=current_depth.get(),
    )


def target_of(fields: Mapping[str, Any], actor: Actor, request_id: str) -> EventTarget:
    """Return the target of a call's events, from the fields `chat_id`, `id` and `session_id` of its body."""
    return EventTarget(
        user_id=actor.user_id,
        chat_id=as_text(fields.get("chat_id")),
        message_id=as_text(fields.get("id")),
        session_id=as_text(fields.get("session_id")),
        request_id=request_id,
    )


def user_agent(facts: RequestFacts) -> str:
    """Return the User-Agent header of the client."""
    return next((value for name, value in facts.headers if name.lower() == "user-agent"), "")


def _metadata(
    request: ChatRequest, target: EventTarget, facts: RequestFacts, model: dict[str, Any]
) -> dict[str, Any]:
    options = request.options
    params = as_mapping(options.get("params"))
    user_message = options.get("user_message")
    return {
        "user_id": target.user_id,
        "user_agent": user_agent(facts),
        "internal": False,
        "endpoint": request.endpoint.value,
        "chat_id": target.chat_id,
        "message_id": target.message_id or None,
        "task_id": None,
        "session_id": target.session_id or None,
        "user_message": copy_json(user_message),
        "user_message_id": as_mapping(user_message).get("id"),
        "assistant_message_id": options.get("assistant_message_id"),
        "folder_id": options.get("folder_id"),
        "filter_ids": filter_ids(options),
        "tool_ids": options.get("tool_ids"),
        "tool_servers": options.get("tool_servers"),
        "files": request.files or None,
        "features": dict(as_mapping(options.get("features"))),
        "variables": dict(as_mapping(options.get("variables"))),
        "chat_variables": dict(as_mapping(options.get("chat_variables"))),
        "model": model,
        "model_id": model["id"],
        "direct": False,
        "params": {name: params[name] for name in PLUGIN_PARAMS if name in params},
    }


def filter_ids(fields: Mapping[str, Any]) -> list[str]:
    """Return the ids of the toggle filters that a request enables."""
    return [item for item in as_sequence(fields.get("filter_ids")) if isinstance(item, str)]
