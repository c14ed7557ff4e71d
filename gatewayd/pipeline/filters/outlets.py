"""Runs outlet filters on finished chats: on request of a client, or after a run."""

from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.service import Catalog
from gatewayd.completions.copies import copy_json
from gatewayd.completions.json_access import as_text
from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.pipeline.documents.model_info import describe_model
from gatewayd.pipeline.documents.plugin_context import filter_ids, make_scope, target_of
from gatewayd.pipeline.endpoints import model_of
from gatewayd.pipeline.filters.chain import PluginFilters, apply_outlet, run_outlet
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.runs.interfaces import LoadConversation
from gatewayd.pipeline.runs.message_updates import MessageUpdates, messages_of
from gatewayd.plugins.runtime.context import CallScope, RequestFacts

DEFAULT_FIELDS: Final[dict[str, Any]] = {"chat_id": "", "session_id": "", "id": ""}
"""Fields that plugins read without checking whether the caller sent them."""


class OutletRunner:
    """Runs the outlet filters of finished answers."""

    def __init__(self, filters: PluginFilters, catalog: Catalog, updates: MessageUpdates) -> None:
        self._filters = filters
        self._catalog = catalog
        self._updates = updates

    async def completed(self, actor: Actor, body: Body, facts: RequestFacts) -> Body:
        """Return `{"model", "messages", ...}` after the outlet filters; other fields stay unchanged.

        Changed contents are stored in the chat `chat_id` if it exists. Raises not_found for a model that the
        actor may not use and for another user's chat, and the errors of filters.
        """
        check_messages(body)
        model, _ = await self._catalog.get(model_of(body), actor)
        is_stored = await self._updates.is_stored(actor, as_text(body.get("chat_id")))
        loaded = await self._filters.list_with_outlet(model.id, filter_ids(body), strict=True)
        if not loaded:
            return body
        before = messages_of(body)
        described = describe_model(model, self._catalog.find_record(model.id))
        scope = call_scope(actor, body, facts, described)
        form = add_default_fields(body)
        for item in loaded:
            form = await apply_outlet(item, scope, form)
        if is_stored:
            await self._updates.keep_contents(scope.target, before, messages_of(form))
        return drop_default_fields(form, body)

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        """Return the messages after the filters, the answer last; None if no filter runs.

        A failing filter is logged and raises nothing. The caller stores the changes. The conversation may be
        long and is read only if a filter runs.
        """
        model, _ = await self._catalog.get(request.model, actor)
        loaded = await self._filters.list_with_outlet(model.id, filter_ids(request.options), strict=False)
        if not loaded:
            return None
        scope = request.scope or make_scope(request, model, self._catalog.find_record(model.id), actor)
        form: Body = {
            "model": request.model,
            "messages": copy_json(list(await conversation())),
            "chat_id": scope.target.chat_id,
            "session_id": scope.target.session_id,
            "id": scope.target.message_id,
            "filter_ids": filter_ids(request.options),
        }
        for item in loaded:
            form = await run_outlet(item, scope, form)
        return messages_of(form)


def call_scope(actor: Actor, body: Body, facts: RequestFacts, model: dict[str, Any] | None) -> CallScope:
    """Return the plugin context of a call that is not a chat request."""
    target = target_of(body, actor, facts.request_id)
    metadata = {
        "user_id": actor.user_id,
        "chat_id": target.chat_id,
        "message_id": target.message_id or None,
        "session_id": target.session_id or None,
        "filter_ids": filter_ids(body),
        "model": model,
        "files": None,
        "features": {},
        "variables": {},
        "params": {},
    }
    return CallScope(
        actor, target, facts, metadata=metadata, model=model, messages=list(body.get("messages") or [])
    )


def check_messages(body: Body) -> None:
    """Raise invalid_request unless the messages are a list of objects."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise invalid("cannot accept messages: expected a list", param="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            where = f"messages[{index}]"
            raise invalid(f"cannot accept {where}: expected an object", param=where)


def add_default_fields(body: Body) -> Body:
    """Return a copy of a body with the ids that plugins expect."""
    return {**DEFAULT_FIELDS, **copy_json(body)}


def drop_default_fields(form: Body, body: Body) -> Body:
    """Return a body without the added ids that still have their default value."""
    return {
        name: value
        for name, value in form.items()
        if name not in DEFAULT_FIELDS or name in body or value != DEFAULT_FIELDS[name]
    }
