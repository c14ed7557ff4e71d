"""Models for the gateway's own tasks: titles, tags, questions that may follow, the choice of tools."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import Body, Completion
from gatewayd.catalog.service import Catalog
from gatewayd.chat.endpoints import context_of
from gatewayd.chat.records import ChatRequest
from gatewayd.chat.scopes import make_scope
from gatewayd.chat.tasktexts import TaskText
from gatewayd.completions.deltas import message_of, said
from gatewayd.errors import GatewayError, Kind

log = logging.getLogger(__name__)


class TaskModels:
    """Puts the questions of tasks to models: no filter, document or tool has a part in that.

    `preferred` names the model for tasks; with "" it is that of the request that causes the task. It may be
    exchanged at any time.
    """

    def __init__(self, catalog: Catalog, preferred: Callable[[], str] = str) -> None:
        self._catalog = catalog
        self.preferred = preferred

    async def text(
        self, task: TaskText, messages: Sequence[Mapping[str, Any]], request: ChatRequest, actor: Actor
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
            completion = await self._ask(task, model, messages, request, actor, original)
        except GatewayError as error:
            if error.kind is not Kind.NOT_FOUND or model == request.model:
                raise
            log.warning("the task model is not used: %s", error.message)
            completion = await self._ask(task, request.model, messages, request, actor, original)
        return said(message_of(completion.body))

    async def _ask(
        self,
        task: str,
        model_id: str,
        messages: Sequence[Body],
        request: ChatRequest,
        actor: Actor,
        original: Body,
    ) -> Completion:
        candidates = await self._catalog.candidates(model_id, actor)
        kept = {name: request.options.get(name) for name in ("chat_id", "id", "session_id")}
        body = {"model": model_id, "messages": list(messages), "stream": False}
        asked = replace(
            request, model=model_id, body=body, stream=False, files=[], options=kept, native=None, scope=None
        )
        first = candidates[0].model
        scope = make_scope(asked, first, self._catalog.find_record(first.id), actor)
        scope.task, scope.task_body = task, {**original, "model": model_id, **kept}
        # What a plugin emits on the way is nothing of the answer that the task is about.
        scope.target = replace(scope.target, message_id="")
        scope.metadata |= {"task": task, "task_body": scope.task_body}
        context = context_of(actor, request.request_id, scope=scope, chat_id=kept["chat_id"])

        async def question(model: Model, source: ModelSource) -> Completion:
            return await source.complete({**body, "model": model.upstream_id}, model, context)

        return await self._catalog.failover.ask(candidates, question)
