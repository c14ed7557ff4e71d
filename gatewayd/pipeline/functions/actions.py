"""Runs plugin actions, the buttons under a message (gatewayd-plugins(7), KINDS)."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.pipeline.documents.model_info import assigned_ids, describe_model
from gatewayd.pipeline.endpoints import model_of
from gatewayd.pipeline.filters.chain import refusal
from gatewayd.pipeline.filters.context import json_problem
from gatewayd.pipeline.filters.outlets import add_default_fields, call_scope, check_messages
from gatewayd.pipeline.runs.message_updates import MessageUpdates, messages_of
from gatewayd.pipeline.tools.calls import ToolEffects, interpret_result
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.context import CallScope, RequestFacts
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError, run_guarded
from gatewayd.plugins.runtime.iterators import PluginIterator, join_texts
from gatewayd.plugins.tool_results import is_mcp
from gatewayd.tasks import TaskOwner, TaskRegistry

_RETURNED: Final = (dict, list, bool, int, float)
"""Types of values that are returned unchanged, except lists of MCP content items."""


@dataclass(frozen=True, slots=True)
class _Button:
    """An action to run: the plugin, and the id of its sub-action or of the plugin."""

    loaded: PluginHandle
    sub_id: str


class ActionRunner:
    """Runs action functions, each as a task that its user can stop."""

    def __init__(
        self,
        registry: PluginManager,
        catalog: Catalog,
        updates: MessageUpdates,
        effects: ToolEffects,
        tasks: TaskRegistry,
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._updates = updates
        self._effects = effects
        self._tasks = tasks

    async def run(self, actor: Actor, action_id: str, body: Body, facts: RequestFacts) -> Any:
        """Run `<function id>` or `<function id>.<sub-action id>` and return its result as JSON values.

        `body` is `{"model", "messages", "chat_id"?, "session_id"?, "id"?, ...}`. Changed messages, texts,
        pages and files are stored in the chat; of texts, pages and files only the text is returned. The
        action continues if the caller disconnects. Raises not_found for an unknown action or model and for
        another user's chat, forbidden for an action that is not enabled for the model, conflict if the action
        is stopped, and the errors of the function.
        """
        check_messages(body)
        plugin = self._find(action_id)
        model, _ = await self._catalog.get(model_of(body), actor)
        self._check(plugin, model, actor)
        is_stored = await self._updates.is_stored(actor, as_text(body.get("chat_id")))
        button = await self._button(plugin, action_id)
        described = describe_model(model, self._catalog.find_record(model.id))
        scope = call_scope(actor, body, facts, described)
        work = self._run(button, scope, body, is_stored=is_stored)
        owner = TaskOwner(actor.user_id, scope.target.chat_id, scope.target.message_id)
        try:
            return await self._tasks.finish(f"action {action_id}", work, owner)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot finish action {action_id!r}: it was stopped"
            ) from None

    def _find(self, action_id: str) -> Plugin:
        plugin = self._registry.find(PluginFamily.FUNCTION, action_id.partition(".")[0])
        if plugin is None or plugin.kind is not PluginKind.ACTION or not plugin.is_active:
            raise not_found("action", action_id)
        return plugin

    def _check(self, plugin: Plugin, model: Model, actor: Actor) -> None:
        if plugin.is_global or actor.is_admin:
            return
        attached = assigned_ids(self._catalog.find_record(model.id), "actionIds")
        if plugin.id not in {action_id.partition(".")[0] for action_id in attached}:
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot run action {plugin.id!r}: it is off for model {model.id!r}"
            )

    async def _button(self, plugin: Plugin, action_id: str) -> _Button:
        loaded = await self._registry.loaded(plugin.family, plugin.id)
        sub_id = action_id.partition(".")[2]
        known = [as_text(as_mapping(item).get("id")) for item in as_sequence(loaded.value("actions"))]
        if sub_id and sub_id not in known:
            raise not_found("action", action_id)
        return _Button(loaded, sub_id or plugin.id)

    async def _run(self, button: _Button, scope: CallScope, body: Body, *, is_stored: bool) -> Any:
        arguments = {"body": add_default_fields(body), "__id__": button.sub_id}
        try:
            value = await button.loaded.call("action", scope, arguments)
            value = await join_texts(value) if isinstance(value, PluginIterator) else value
        except PluginError as failure:
            raise refusal(failure) from failure
        if isinstance(value, BaseModel):
            value = await _dumped(value, button)
        if value is None:
            return None
        if isinstance(value, str) or is_mcp(value):
            return await self._store_text(value, button, scope)
        if not isinstance(value, _RETURNED) or json_problem(value) is not None:
            result = await interpret_result(value, button.loaded.plugin.name)
            return (await self._effects.show(scope, result))[0]
        if is_stored and isinstance(value, dict):
            await self._updates.keep_messages(scope.target, messages_of(body), messages_of(value))
        return value

    async def _store_text(self, value: Any, button: _Button, scope: CallScope) -> str:
        """Store a text, or the texts and files of a list, with the message, and return the text.

        The text is stored as a source, like a tool result (gatewayd-plugins(7), RESULTS).
        """
        plugin = button.loaded.plugin
        result = await interpret_result(value, plugin.name)
        text, _ = await self._effects.show(scope, result)
        if text and not result.is_notice and button.loaded.flag("citation", default=True):
            source = {
                "source": {"name": plugin.name},
                "document": [text],
                "metadata": [{"source": plugin.id}],
                "tool_result": True,
            }
            await self._effects.events.emit(scope.target, {"type": "source", "data": source})
        return text


async def _dumped(value: BaseModel, button: _Button) -> Any:
    """Dump a pydantic model to an object, in a thread, because it may run code of the plugin."""
    outcome = await asyncio.to_thread(run_guarded, value.model_dump)
    if outcome.error is not None:
        name, error = button.loaded.plugin.id, type(outcome.error).__name__
        raise GatewayError(ErrorKind.PLUGIN_FAILED, f"cannot read the result of action {name!r}: {error}")
    return outcome.value
