"""What filters see and change of one chat request (4.2), the gateway's own fields included; pure."""

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
"""Fields of the gateway's own that inlets read and may change, beside the files."""

_ADDED: Final[tuple[str, ...]] = (*_SHARED, "tool_servers")
"""Fields of the gateway's own that inlets may set."""


class FilterContext:
    """One request on its way through the filters.

    The body that they get is the request to the source, with `stream`, `metadata` (the very object that is
    `__metadata__`), and `files`, `tool_ids` and `features` where the caller sent them.
    """

    def __init__(self, request: ChatRequest, scope: CallScope) -> None:
        self.scope = scope
        self._request = request
        self._asked: list[Any] = []
        self._outlet: Body | None = None
        # What the caller itself sent under this name is the source's.
        self._metadata = request.body.get("metadata")

    def begin(self, *, has_outlets: bool) -> None:
        """Make the request this exchange's own, so that nobody else's copy is changed by filters."""
        self._request.body = copy_json(self._request.body)
        if has_outlets:
            self._asked = copy_json(list(as_sequence(self._request.body.get("messages"))))

    def form(self) -> Body:
        """Return the body as an inlet gets it."""
        request = self._request
        own: Body = {name: request.options[name] for name in _SHARED if name in request.options}
        if request.files:
            own["files"] = request.files
        return {**request.body, "stream": request.stream, "metadata": self.scope.metadata, **own}

    def take(self, form: Any, filter_id: str) -> None:
        """Make the request what an inlet returned; plugin_failed, naming the filter, when it is none."""
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
        self._tell(form)

    def drop_files(self) -> None:
        """Take the files from the request: a filter has read them."""
        self._request.files = []
        self.scope.files = self.scope.metadata["files"] = None

    def finished(self, completion: Completion) -> Body:
        """Return the body as an outlet gets it; what one changed the next one sees."""
        if self._outlet is None:
            target = self.scope.target
            answer = {"role": "assistant", "content": _content(completion)}
            self._outlet = {
                "model": self._request.model,
                "messages": [*self._asked, answer],
                "chat_id": target.chat_id,
                "session_id": target.session_id,
                "id": target.message_id,
                "filter_ids": filter_ids(self._request.options),
            }
        return self._outlet

    def take_outlet_result(self, form: Body, completion: Completion) -> None:
        """Make the answer what an outlet made of it: the content of the last message."""
        self._outlet = form
        messages = as_sequence(form.get("messages"))
        content = as_mapping(messages[-1]).get("content") if messages else None
        if isinstance(content, str) and content != _content(completion):
            choice = completion.body["choices"][0]
            choice["message"] = {**as_mapping(choice.get("message")), "content": content}

    def _tell(self, form: Body) -> None:
        """Let everybody who is asked from now on know what has changed."""
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
        return f"it is no object but a {type(form).__name__}"
    model, messages = form.get("model"), form.get("messages")
    if not isinstance(model, str) or not model:
        return "model is no text"
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "messages is no list of objects"
    files = form.get("files")
    if files is not None and not (isinstance(files, list) and all(isinstance(item, dict) for item in files)):
        return "files is no list of objects"
    return json_problem({name: value for name, value in form.items() if name != "metadata"})


def json_problem(value: Any) -> str | None:
    """Return why a value cannot be written as JSON, None when it can."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        return f"it is not JSON: {error}"
    return None


def _content(completion: Completion) -> str:
    return text_of(message_of(completion.body))
