"""Model calls of tasks: titles, tags, follow-up questions, the choice of tools."""

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
    """Sends task prompts to models, with filters and model records, but without tools and documents.

    `preferred` returns the id of the task model; "" stands for the model of the request that causes the task.
    It may be replaced at any time.
    """

    def __init__(self, catalog: Catalog, filters: ChatFilters, preferred: Callable[[], str] = str) -> None:
        self._catalog = catalog
        self._filters = filters
        self.preferred = preferred

    async def text(
        self, task: TaskPrompt, messages: Sequence[Mapping[str, Any]], request: ChatRequest, actor: Actor
    ) -> str:
        """Return a model's answer to a task prompt; `request` is the request that causes the task."""
        prompt = [{"role": "user", "content": task.prompt(messages)}]
        return await self.ask(task.name, prompt, request, actor, {"messages": list(messages)})

    async def ask(
        self, task: str, messages: Sequence[Body], request: ChatRequest, actor: Actor, original: Body
    ) -> str:
        """Return a model's answer to messages; plugins get the task name and `original`, the task's input.

        If the task model is missing or forbidden for the actor, the model of the request answers.
        """
        model = self.preferred() or request.model
        try:
            return await self._ask(task, model, messages, request, actor, original)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND or model == request.model:
                raise
            log.warning("task model not used: %s", error.full_message)
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
        scopes = _TaskScopes(task, {**original, "model": model, **_chat_fields(request)})
        pipeline = Pipeline(self._catalog, self._filters, NoDocuments(), NoTools(), scopes)
        answer = await pipeline.run(_task_request(request, model, messages), actor)
        if answer.completion is None:
            raise RuntimeError("an answer that is not streamed has a completion")
        return text_of(message_of(answer.completion.body))


class _TaskScopes:
    """Makes the plugin context of a task request."""

    def __init__(self, task: str, original: Body) -> None:
        self._task = task
        self._original = original

    def __call__(
        self, request: ChatRequest, model: Model, record: ModelRecord | None, actor: Actor
    ) -> CallScope:
        # The documents of a record apply to conversations only.
        request.files = []
        scope = make_scope(request, model, record, actor)
        scope.task, scope.task_body = self._task, self._original
        # Events of plugins in a task do not belong to the answered message.
        scope.target = replace(scope.target, message_id="")
        scope.metadata |= {"task": self._task, "task_body": scope.task_body}
        return scope


def _chat_fields(request: ChatRequest) -> Body:
    return {name: request.options.get(name) for name in ("chat_id", "id", "session_id")}


def _task_request(request: ChatRequest, model: str, messages: Sequence[Body]) -> ChatRequest:
    is_own = request.endpoint is Endpoint.TASK
    return ChatRequest(
        model,
        {"model": model, "messages": list(messages), "stream": False},
        stream=False,
        options=_chat_fields(request),
        request_id=request.request_id,
        facts=request.facts,
        endpoint=Endpoint.TASK if is_own else Endpoint.BACKGROUND,
    )
