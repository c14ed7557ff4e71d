"""Actions: buttons under a message that run a function of a plugin (4.9 of the plugin rules)."""

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
from gatewayd.plugins.runtime.handles import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError, run_guarded
from gatewayd.plugins.runtime.iterators import PluginIterator, join_texts
from gatewayd.plugins.tool_results import is_mcp
from gatewayd.tasks import TaskOwner, TaskRegistry

_RETURNED: Final = (dict, list, bool, int, float)
"""Values that go to the caller as they are; a list of the items of MCP does not."""


@dataclass(frozen=True, slots=True)
class _Button:
    """An action to run: the plugin, and the sub-action of it, or the plugin's own id."""

    loaded: PluginHandle
    sub_id: str


class ActionRunner:
    """Runs action functions, each as a task that its user can stop."""

    def __init__(
        self,
        registry: PluginManager,
        catalog: Catalog,
        rewriting: MessageUpdates,
        effects: ToolEffects,
        tasks: TaskRegistry,
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._rewriting = rewriting
        self._effects = effects
        self._tasks = tasks

    async def run(self, actor: Actor, action_id: str, body: Body, facts: RequestFacts) -> Any:
        """Run `<function id>` or `<function id>.<sub-action id>` and return what it returned, as JSON values.

        `body` is `{"model", "messages", "chat_id"?, "session_id"?, "id"?, ...}`. Messages that come back
        changed are kept in the chat, as are texts, pages and files; of these the text alone is returned. It
        runs on when the caller leaves. Raises not_found for an unknown action, model or foreign chat,
        forbidden for an action that is not on for the model, conflict when it is stopped, else what the
        function raises.
        """
        check_messages(body)
        plugin = self._find(action_id)
        model, _ = await self._catalog.get(model_of(body), actor)
        self._check(plugin, model, actor)
        is_stored = await self._rewriting.is_stored(actor, as_text(body.get("chat_id")))
        button = await self._button(plugin, action_id)
        described = describe_model(model, self._catalog.find_record(model.id))
        scope = call_scope(actor, body, facts, described)
        work = self._run(button, scope, body, is_stored=is_stored)
        purpose = TaskOwner(actor.user_id, scope.target.chat_id, scope.target.message_id)
        try:
            return await self._tasks.finish(f"action {action_id}", work, purpose)
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
                ErrorKind.FORBIDDEN, f"cannot run action {plugin.id!r}: it is not on for model {model.id!r}"
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
            return await self._told(value, button, scope)
        if not isinstance(value, _RETURNED) or json_problem(value) is not None:
            result = await interpret_result(value, button.loaded.plugin.name)
            return (await self._effects.show(scope, result))[0]
        if is_stored and isinstance(value, dict):
            await self._rewriting.keep_messages(scope.target, messages_of(body), messages_of(value))
        return value

    async def _told(self, value: Any, button: _Button, scope: CallScope) -> str:
        """Keep a text, or the texts and files of a list, with the message, and return the text (6.5).

        A text is kept as a source, as that of a tool is.
        """
        plugin = button.loaded.plugin
        result = await interpret_result(value, plugin.name)
        said, _ = await self._effects.show(scope, result)
        if said and not result.is_notice and button.loaded.flag("citation", default=True):
            source = {
                "source": {"name": plugin.name},
                "document": [said],
                "metadata": [{"source": plugin.id}],
                "tool_result": True,
            }
            await self._effects.events.emit(scope.target, {"type": "source", "data": source})
        return said


async def _dumped(value: BaseModel, button: _Button) -> Any:
    """Return a model as an object; code of the plugin, which may do so itself, runs in a thread."""
    outcome = await asyncio.to_thread(run_guarded, value.model_dump)
    if outcome.error is not None:
        name, error = button.loaded.plugin.id, type(outcome.error).__name__
        raise GatewayError(ErrorKind.PLUGIN_FAILED, f"cannot read the result of action {name!r}: {error}")
    return outcome.value
