"""Routes of running tasks, and of titles, tags and follow-ups of conversations."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from aiohttp import web

from gatewayd.dialects import openai
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, facts_of, request_id
from gatewayd.http.reply_schemas import chats
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.endpoints import model_of
from gatewayd.pipeline.records import ChatRequest, Endpoint
from gatewayd.pipeline.runs.control import TaskControl
from gatewayd.pipeline.runs.service import RunService
from gatewayd.pipeline.tasks import prompts
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tasks.prompts import TaskPrompt

TASKS: Final = RouteGroup("/api/tasks", "tasks")
MODELS: Final = RouteGroup("/api/v1/tasks", "tasks")


class TaskRoutes:
    """Routes of running tasks and of completions for titles, tags and follow-ups."""

    def __init__(
        self, stopping: TaskControl, models: TaskModels, runs: RunService, *, body_limit: int
    ) -> None:
        self._stopping = stopping
        self._models = models
        self._runs = runs
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return the rows of running tasks, then those of the task completions of Open WebUI."""
        return [
            TASKS.row("POST", "/stop/{task_id}", self.stop, RouteAccess.VERIFIED, "Stop a task"),
            TASKS.row("GET", "", self.list, RouteAccess.ADMIN, "List the running tasks"),
            TASKS.row(
                "GET", "/chat/{chat_id}", self.of_chat, RouteAccess.VERIFIED, "List the tasks of a chat"
            ),
            TASKS.row(
                "POST",
                "/chat/{chat_id}/stop",
                self.stop_chat,
                RouteAccess.VERIFIED,
                "Stop the tasks of a chat",
            ),
            MODELS.row(
                "GET",
                "/config",
                self.config,
                RouteAccess.VERIFIED,
                "Show which tasks are on, and their model",
            ),
            MODELS.row(
                "POST",
                "/title/completions",
                self.title,
                RouteAccess.VERIFIED,
                "Generate a title",
                use=RequestUse.ANSWER,
            ),
            MODELS.row(
                "POST",
                "/tags/completions",
                self.tags,
                RouteAccess.VERIFIED,
                "Generate tags",
                use=RequestUse.ANSWER,
            ),
            MODELS.row(
                "POST",
                "/follow_up/completions",
                self.follow_up,
                RouteAccess.VERIFIED,
                "Generate follow-up questions",
                use=RequestUse.ANSWER,
            ),
        ]

    @answers(chats.stop_result)
    async def stop(self, request: web.Request) -> web.Response:
        """Stop a task: `{"status": true, "message"}`; `{"status": false, "message"}` for an unknown one."""
        task_id = request.match_info["task_id"]
        if await self._stopping.stop(actor(request), task_id):
            return _stop_reply(f"Task {task_id} successfully stopped.")
        return _stop_reply(f"Task with ID {task_id} not found.", status=False)

    @answers(chats.tasks)
    async def list(self, request: web.Request) -> web.Response:
        """Return `{"tasks": [id]}`, oldest first."""
        return body.json_reply({"tasks": [info.id for info in await self._stopping.every()]})

    @answers(chats.task_ids)
    async def of_chat(self, request: web.Request) -> web.Response:
        """Return `{"task_ids": [id]}`, none for a chat of another user."""
        found = await self._stopping.of_chat(actor(request), request.match_info["chat_id"])
        return body.json_reply({"task_ids": [info.id for info in found]})

    @answers(chats.stop_result)
    async def stop_chat(self, request: web.Request) -> web.Response:
        """Stop the tasks of a chat: `{"status": true, "message"}`."""
        chat_id = request.match_info["chat_id"]
        if await self._stopping.stop_chat(actor(request), chat_id):
            return _stop_reply(f"All tasks of chat {chat_id} stopped.")
        return _stop_reply(f"No tasks found for chat {chat_id}.")

    @answers(chats.task_config)
    async def config(self, request: web.Request) -> web.Response:
        """Return the model for titles, tags and follow-ups, and which of them are on."""
        options = self._runs.options
        return body.json_reply(
            {
                "TASK_MODEL": self._models.preferred(),
                "ENABLE_TITLE_GENERATION": options.makes_titles,
                "ENABLE_TAGS_GENERATION": options.makes_tags,
                "ENABLE_FOLLOW_UP_GENERATION": options.makes_follow_ups,
            }
        )

    @answers(chats.task_completion)
    async def title(self, request: web.Request) -> web.Response:
        """Answer `{"model", "messages"}` with a completion of `{"title": "..."}` as JSON text."""
        return await self._make(prompts.TITLE, request)

    @answers(chats.task_completion)
    async def tags(self, request: web.Request) -> web.Response:
        """Answer `{"model", "messages"}` with a completion of `{"tags": [...]}` as JSON text."""
        return await self._make(prompts.TAGS, request)

    @answers(chats.task_completion)
    async def follow_up(self, request: web.Request) -> web.Response:
        """Answer `{"model", "messages"}` with a completion of `{"follow_ups": [...]}` as JSON text."""
        return await self._make(prompts.FOLLOW_UPS, request)

    async def _make(self, task: TaskPrompt, request: web.Request) -> web.Response:
        sent = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        model, messages = model_of(sent), sent.get("messages")
        openai.check_messages(messages)
        options = {name: sent[name] for name in ("chat_id",) if isinstance(sent.get(name), str)}
        chat = ChatRequest(model, {}, stream=False, options=options, request_id=request_id(request))
        chat.facts, chat.endpoint = partial(facts_of, request), Endpoint.TASK
        await self._runs.check(chat, actor(request))
        text = await self._models.text(task, messages or [], chat, actor(request))
        message = {"role": "assistant", "content": prompts.render_task_answer(task.key, text)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return body.json_reply(
            {
                "id": f"chatcmpl-{chat.request_id}",
                "object": "chat.completion",
                "model": model,
                "choices": [choice],
            }
        )


def _stop_reply(message: str, *, status: bool = True) -> web.Response:
    reply: dict[str, Any] = {"status": status, "message": message}
    return body.json_reply(reply)
