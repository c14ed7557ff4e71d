"""Models for the gateway's own tasks: titles, tags, questions that may follow, the choice of tools."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.completions.deltas import message_of, text_of
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import NoDocuments, NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest, Endpoint
from gatewayd.pipeline.tasks.prompts import TaskPrompt
from gatewayd.plugins.runtime.context import CallScope

log = logging.getLogger(__name__)


class TaskModels:
    """Puts the questions of tasks to models, as filters and the models' records let them; no tool has a part.

    `preferred` names the model for tasks; with "" it is that of the request that causes the task. It may be
    exchanged at any time.
    """

    def __init__(self, catalog: Catalog, filters: ChatFilters, preferred: Callable[[], str] = str) -> None:
        self._catalog = catalog
        self._filters = filters
        self.preferred = preferred

    async def text(
        self, task: TaskPrompt, messages: Sequence[Mapping[str, Any]], request: ChatRequest, actor: Actor
    ) -> str:
        """Return what a model says to a task about a conversation; `request` is what caused the task."""
        asked = [{"role": "user", "content": task.prompt(messages)}]
        return await self.ask(task.name, asked, request, actor, {"messages": list(messages)})

    async def ask(
        self, task: str, messages: Sequence[Body], request: ChatRequest, actor: Actor, original: Body
    ) -> str:
        """Return what a model says to messages; plugins are told the task, and `original`, what it is about.

        A task model that the actor may not use, or that is gone, gives its place to that of the request.
        """
        model = self.preferred() or request.model
        try:
            return await self._ask(task, model, messages, request, actor, original)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND or model == request.model:
                raise
            log.warning("the task model is not used: %s", error.full_message)
        return await self._ask(task, request.model, messages, request, actor, original)

    async def _ask(
        self,
        task: str,
        model: str,
        messages: Sequence[Body],
        request: ChatRequest,
        actor: Actor,
        original: Body,
    ) -> str:
        scopes = _TaskScopes(task, {**original, "model": model, **_kept(request)})
        pipeline = Pipeline(self._catalog, self._filters, NoDocuments(), NoTools(), scopes)
        answer = await pipeline.run(_asked(request, model, messages), actor)
        if answer.completion is None:
            raise RuntimeError("an answer that is not streamed has a completion")
        return text_of(message_of(answer.completion.body))


class _TaskScopes:
    """Tells plugins of the task that a request is made for."""

    def __init__(self, task: str, original: Body) -> None:
        self._task = task
        self._original = original

    def __call__(
        self, request: ChatRequest, model: Model, record: ModelRecord | None, actor: Actor
    ) -> CallScope:
        # The documents of a record are for conversations.
        request.files = []
        scope = make_scope(request, model, record, actor)
        scope.task, scope.task_body = self._task, self._original
        # What a plugin emits on the way is nothing of the answer that the task is about.
        scope.target = replace(scope.target, message_id="")
        scope.metadata |= {"task": self._task, "task_body": scope.task_body}
        return scope


def _kept(request: ChatRequest) -> Body:
    return {name: request.options.get(name) for name in ("chat_id", "id", "session_id")}


def _asked(request: ChatRequest, model: str, messages: Sequence[Body]) -> ChatRequest:
    is_own = request.endpoint is Endpoint.TASK
    return ChatRequest(
        model,
        {"model": model, "messages": list(messages), "stream": False},
        stream=False,
        options=_kept(request),
        request_id=request.request_id,
        facts=request.facts,
        endpoint=Endpoint.TASK if is_own else Endpoint.BACKGROUND,
    )
