"""The body of one chat request as its filters see and change it; pure."""

from typing import Any, Final

import orjson

from gatewayd.completions.copies import copy_json
from gatewayd.completions.deltas import message_of, text_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.plugin_context import OWN_FIELDS, filter_ids
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.runtime.context import CallScope

_SHARED: Final[tuple[str, ...]] = ("tool_ids", "features")
"""Fields of the gateway, besides the files, that inlets can read and change."""

_ADDED: Final[tuple[str, ...]] = (*_SHARED, "tool_servers")
"""Fields of the gateway that inlets can set."""


class FilterContext:
    """The body of one request while it passes its filters.

    Filters get the request to the source, plus `stream`, `metadata` (the same object as `__metadata__`), and
    `files`, `tool_ids` and `features` if the caller sent them.
    """

    def __init__(self, request: ChatRequest, scope: CallScope) -> None:
        self.scope = scope
        self._request = request
        self._messages: list[Any] = []
        self._outlet: Body | None = None
        # A `metadata` field of the caller belongs to the source.
        self._metadata = request.body.get("metadata")

    def begin(self, *, has_outlets: bool) -> None:
        """Copy the body of the request, so that filters change no copy of other requests."""
        self._request.body = copy_json(self._request.body)
        if has_outlets:
            self._messages = copy_json(list(as_sequence(self._request.body.get("messages"))))

    def form(self) -> Body:
        """Return the body for an inlet."""
        request = self._request
        own: Body = {name: request.options[name] for name in _SHARED if name in request.options}
        if request.files:
            own["files"] = request.files
        return {**request.body, "stream": request.stream, "metadata": self.scope.metadata, **own}

    def take(self, form: Any, filter_id: str) -> None:
        """Replace the request by the body that an inlet returned; raise plugin_failed if it is invalid."""
        problem = _problem(form)
        if problem is not None:
            raise GatewayError(
                ErrorKind.PLUGIN_FAILED, f"cannot use the body of filter {filter_id!r}: {problem}"
            )
        request = self._request
        request.model = form["model"]
        request.files = list(as_sequence(form.get("files")))
        for name in _SHARED:
            request.options.pop(name, None)
        request.options |= {name: form[name] for name in _ADDED if name in form}
        body = {name: value for name, value in form.items() if name not in OWN_FIELDS and name != "metadata"}
        if self._metadata is not None:
            body["metadata"] = self._metadata
        request.body = {**body, "stream": request.stream}
        self._update_scope(form)

    def drop_files(self) -> None:
        """Remove the files from the request, because a filter handles them."""
        self._request.files = []
        self.scope.files = self.scope.metadata["files"] = None

    def finished(self, completion: Completion) -> Body:
        """Return the body for an outlet, with the changes of the earlier outlets."""
        if self._outlet is None:
            target = self.scope.target
            answer = {"role": "assistant", "content": _content(completion)}
            self._outlet = {
                "model": self._request.model,
                "messages": [*self._messages, answer],
                "chat_id": target.chat_id,
                "session_id": target.session_id,
                "id": target.message_id,
                "filter_ids": filter_ids(self._request.options),
            }
        return self._outlet

    def take_outlet_result(self, form: Body, completion: Completion) -> None:
        """Set the answer to the content of the last message that an outlet returned."""
        self._outlet = form
        messages = as_sequence(form.get("messages"))
        content = as_mapping(messages[-1]).get("content") if messages else None
        if isinstance(content, str) and content != _content(completion):
            choice = completion.body["choices"][0]
            choice["message"] = {**as_mapping(choice.get("message")), "content": content}

    def _update_scope(self, form: Body) -> None:
        """Update the plugin context, so that later plugins see the changes."""
        request, scope = self._request, self.scope
        if isinstance(form.get("metadata"), dict):
            scope.metadata = form["metadata"]
        scope.files = request.files or None
        scope.messages = request.body["messages"]
        scope.metadata["files"] = scope.files
        scope.metadata["tool_ids"] = request.options.get("tool_ids")
        scope.metadata["features"] = dict(as_mapping(request.options.get("features")))


def _problem(form: Any) -> str | None:
    if not isinstance(form, dict):
        return f"expected an object, got {type(form).__name__}"
    model, messages = form.get("model"), form.get("messages")
    if not isinstance(model, str) or not model:
        return "model must be text"
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "messages must be a list of objects"
    files = form.get("files")
    if files is not None and not (isinstance(files, list) and all(isinstance(item, dict) for item in files)):
        return "files must be a list of objects"
    return json_problem({name: value for name, value in form.items() if name != "metadata"})


def json_problem(value: Any) -> str | None:
    """Return the reason why a value cannot be encoded as JSON; None if it can."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        return f"it is not JSON: {error}"
    return None


def _content(completion: Completion) -> str:
    return text_of(message_of(completion.body))
