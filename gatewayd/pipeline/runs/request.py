"""Parses the fields of a request that start a run; pure."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import invalid
from gatewayd.events.message_effects import is_kept
from gatewayd.pipeline.records import ChatRequest

MAX_ANSWERS: Final = 32


@dataclass(frozen=True, slots=True)
class AnswerTarget:
    """A message to be answered, and the model that answers it."""

    model: str
    message_id: str


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The fields of a request about its chat.

    Messages are stored if `is_stored`. `user_message` is the question to store, `parent_id` the message to
    answer. `background` names the tasks that follow the answer. `extra_prompt` is appended to the messages
    and not stored.
    """

    chat_id: str
    session_id: str
    answered: tuple[AnswerTarget, ...]
    user_message: dict[str, Any] | None = None
    parent_id: str | None = None
    background: frozenset[str] = frozenset()
    extra_prompt: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether the chat is a stored one."""
        return is_kept(self.chat_id)


def wants_run(request: ChatRequest) -> bool:
    """Return True if a request starts a run: it names a chat, and a session, an answer or a question."""
    options = request.options
    if not options.get("chat_id"):
        return False
    return has_history(options) or any(
        options.get(name) for name in ("session_id", "id", "message_ids", "assistant_message_id")
    )


def wants_chat(request: ChatRequest) -> bool:
    """Return True if a request needs a new chat: it has a session, no chat, and a null `parent_id`."""
    options = request.options
    is_first = "parent_id" in options and options["parent_id"] is None
    return is_first and bool(options.get("session_id")) and not options.get("chat_id")


def parse_run_request(request: ChatRequest, new_id: ids.NewId = ids.new_id) -> RunRequest:
    """Parse the run fields of a request; raise invalid_request with the name of a bad field."""
    options = request.options
    question = _question(options.get("user_message"))
    parent = None if question is None else _text(question, "id", "user_message.id")
    return RunRequest(
        chat_id=_text(options, "chat_id"),
        session_id=_text(options, "session_id"),
        answered=_answered(request, new_id),
        user_message=question,
        parent_id=parent or _text(options, "parent_id") or None,
        background=_background(options.get("background_tasks")),
        extra_prompt=_text(options, "regeneration_prompt"),
    )


def has_history(options: Mapping[str, Any]) -> bool:
    """Return True if the chat holds the messages, so that the request may omit them."""
    question = options.get("user_message")
    return bool(options.get("chat_id")) and isinstance(question, dict) and bool(question.get("id"))


def _answered(request: ChatRequest, new_id: ids.NewId) -> tuple[AnswerTarget, ...]:
    several = _several(request.options.get("message_ids"))
    if several:
        return several
    message_id = _text(request.options, "id") or _text(request.options, "assistant_message_id")
    return (AnswerTarget(request.model, message_id or new_id()),)


def _several(value: object) -> tuple[AnswerTarget, ...]:
    if value is None:
        return ()
    if isinstance(value, dict):
        value = [{"model_id": model, "message_id": message} for model, message in value.items()]
    if not isinstance(value, list) or len(value) > MAX_ANSWERS:
        raise invalid(
            f"cannot accept message_ids: expected a list or an object of at most {MAX_ANSWERS}",
            param="message_ids",
        )
    found = [_one(item, f"message_ids[{index}]") for index, item in enumerate(value)]
    if len({item.message_id for item in found}) < len(found):
        raise invalid("cannot accept message_ids: a message id is repeated", param="message_ids")
    return tuple(found)


def _one(item: object, where: str) -> AnswerTarget:
    if not isinstance(item, dict):
        raise invalid(f"cannot accept {where}: expected an object", param=where)
    model, message = _text(item, "model_id", f"{where}.model_id"), _text(item, "message_id", where)
    if not model or not message:
        raise invalid(f"cannot accept {where}: expected model_id and message_id as text", param=where)
    return AnswerTarget(model, message)


def _question(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or not value["id"]:
        raise invalid("cannot accept user_message: expected an object with a text id", param="user_message")
    content = value.get("content")
    if content is not None and not isinstance(content, str | list):
        raise invalid(
            "cannot accept user_message.content: expected text or a list of parts",
            param="user_message.content",
        )
    _text(value, "parentId", "user_message.parentId")
    return value


def _background(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, dict):
        raise invalid("cannot accept background_tasks: expected an object", param="background_tasks")
    return frozenset(name for name, is_wanted in value.items() if is_wanted)


def _text(values: Mapping[str, Any], name: str, where: str = "") -> str:
    """Return a text field; "" if it is absent."""
    value = values.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"cannot accept {where or name}: expected text", param=where or name)
    return value


def copy_for_answers(request: ChatRequest, answered: Sequence[AnswerTarget]) -> Sequence[ChatRequest]:
    """Return one request for each answer, so that filters of one do not affect the others."""
    if len(answered) == 1:
        request.options = {**request.options, "id": answered[0].message_id}
        request.model = request.body["model"] = answered[0].model
        return [request]
    return [_copy(request, one) for one in answered]


def _copy(request: ChatRequest, one: AnswerTarget) -> ChatRequest:
    return replace(
        request,
        model=one.model,
        body={**deepcopy(request.body), "model": one.model},
        files=deepcopy(request.files),
        options={**request.options, "id": one.message_id},
        warnings=list(request.warnings),
    )
