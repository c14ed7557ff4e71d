"""Converts the input items of the Responses protocol to chat messages; pure.

Reasoning, text and calls that follow each other are one assistant message, and the results of its calls
follow it. Calls of tools that the provider ran have no counterpart and are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import PLACEHOLDERS, parse_object
from gatewayd.dialects.responses.fields import LeftOutParts, optional_text, read_text, wrong
from gatewayd.dialects.responses.parts import media_of, text_of_parts, to_parts
from gatewayd.dialects.responses.sealed import ContentSeal
from gatewayd.dialects.responses.tools import ADDITIONAL_TOOLS, ToolNames, custom_arguments
from gatewayd.dialects.responses.turns import AssistantTurn
from gatewayd.errors import invalid

CALL_SUFFIX: Final = "_call"
RESULT_SUFFIX: Final = "_output"
INVALID_ARGUMENTS: Final = "INVALID_JSON"
"""Only key of the arguments of an earlier call whose arguments were no JSON object."""

INVALID_CONTENT_CODE: Final = "invalid_encrypted_content"

_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_CALL_FIELDS: Final = frozenset({"id", "type", "call_id", "status"})
_RESULT_MEDIA: Final = "Returned by tool call {}:"
_SUMMARY: Final = "Summary of the conversation so far:\n\n{}"

ItemReader = Callable[[Body, str], None]


class InputReader:
    """Reads input items in their order, one by one; `finish` returns the messages.

    `files` are the ids of the gateway's own files that the items name.
    """

    def __init__(self, names: ToolNames, seal: ContentSeal, left_out: LeftOutParts) -> None:
        self._names = names
        self._seal = seal
        self._left_out = left_out
        self._turn = AssistantTurn()
        self._media: list[Body] = []
        self._messages: list[Body] = []
        self.files: list[str] = []
        self._readers: dict[str, ItemReader] = {
            "message": self._message,
            "reasoning": self._reasoning,
            "function_call": self._function_call,
            "custom_tool_call": self._custom_call,
            "compaction": self._compaction,
        }

    def add(self, item: object, where: str) -> None:
        """Read one item; raise invalid_request with the name of a bad field."""
        if not isinstance(item, dict):
            raise wrong(where, "an object")
        kind = item.get("type")
        if not kind and "role" in item:
            kind = "message"
        if not isinstance(kind, str) or not kind:
            raise wrong(f"{where}.type", "text")
        reader = self._readers.get(kind)
        if reader is not None:
            reader(item, where)
        elif kind.endswith(RESULT_SUFFIX) and item.get("call_id") is not None:
            self._result(item, where)
        elif kind.endswith(CALL_SUFFIX) and item.get("call_id") is not None:
            self._other_call(item, where, kind)
        elif kind == ADDITIONAL_TOOLS:
            # They are tools of the whole request.
            return
        elif kind == "item_reference":
            raise invalid(f"cannot find item {item.get('id')!r:.80}", param=where)
        else:
            self._left_out.add(f"items of type {kind!r:.80}")

    def finish(self) -> list[Body]:
        """Return the messages of all items."""
        self._end_turn()
        self._end_results()
        return self._messages

    def _message(self, item: Body, where: str) -> None:
        role = item.get("role")
        if role == "assistant":
            text = text_of_parts(item.get("content"), f"{where}.content")
            if self._turn.needs_new_message:
                self._end_turn()
            self._end_results()
            self._turn.add_text(text)
            return
        self._end_turn()
        self._end_results()
        if isinstance(role, str) and role in _SYSTEM_ROLES:
            text = text_of_parts(item.get("content"), f"{where}.content", separator="\n")
            self._messages.append({"role": role, "content": text})
        elif role == "user":
            content = to_parts(item.get("content"), f"{where}.content", self.files)
            self._messages.append({"role": "user", "content": content})
        else:
            raise wrong(f"{where}.role", "one of assistant, developer, system, user")

    def _reasoning(self, item: Body, where: str) -> None:
        if self._turn.needs_new_message:
            self._end_turn()
        self._end_results()
        sealed = optional_text(item, "encrypted_content", where)
        if sealed:
            opened = self._seal.open("reasoning", sealed)
            if opened is None:
                self._left_out.add("reasoning that another provider encrypted")
            else:
                self._turn.add_sealed(opened)
            return
        for name in ("summary", "content"):
            text = text_of_parts(item.get(name) or [], f"{where}.{name}", separator="\n\n")
            if text:
                self._turn.add_sealed({"text": text})
                return

    def _function_call(self, item: Body, where: str) -> None:
        arguments = read_text(item, "arguments", where)
        if arguments.strip() in PLACEHOLDERS:
            arguments = "{}"
        elif parse_object(arguments) is None:
            # Providers refuse a history with arguments that are no object.
            arguments = orjson.dumps({INVALID_ARGUMENTS: arguments}).decode()
        self._call(item, where, arguments)

    def _custom_call(self, item: Body, where: str) -> None:
        self._call(item, where, custom_arguments(read_text(item, "input", where)))

    def _call(self, item: Body, where: str, arguments: str) -> None:
        name = read_text(item, "name", where, is_empty_allowed=False)
        function = self._names.function(name, optional_text(item, "namespace", where))
        self._add_call(item, where, function, arguments)

    def _other_call(self, item: Body, where: str, kind: str) -> None:
        """Convert the call of a tool with a type of its own that the client ran, such as a shell."""
        given = {name: value for name, value in item.items() if name not in _CALL_FIELDS}
        self._add_call(item, where, kind.removesuffix(CALL_SUFFIX), orjson.dumps(given).decode())

    def _add_call(self, item: Body, where: str, function: str, arguments: str) -> None:
        self._end_results()
        call_id = read_text(item, "call_id", where, is_empty_allowed=False)
        self._turn.add_call(
            {"id": call_id, "type": "function", "function": {"name": function, "arguments": arguments}}
        )

    def _result(self, item: Body, where: str) -> None:
        self._end_turn()
        call_id = read_text(item, "call_id", where, is_empty_allowed=False)
        output, path = item.get("output"), f"{where}.output"
        media: Sequence[Body] = ()
        if isinstance(output, list) and item.get("type") in (
            "function_call_output",
            "custom_tool_call_output",
        ):
            media = media_of(output, path, self.files)
            text = text_of_parts(output, path, separator="\n", are_media_allowed=True)
        elif isinstance(output, str):
            text = output
        elif output is None or isinstance(output, bool | int | float):
            raise wrong(path, "text or a list of parts")
        else:
            text = orjson.dumps(output).decode()
        if media:
            self._media += [{"type": "text", "text": _RESULT_MEDIA.format(call_id)}, *media]
            text = text or "(see the next message)"
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _compaction(self, item: Body, where: str) -> None:
        sealed = read_text(item, "encrypted_content", where)
        opened = self._seal.open("compaction", sealed)
        if opened is None:
            path = f"{where}.encrypted_content"
            raise invalid(
                f"cannot read {path}: another provider made it, or it is damaged",
                param=path,
                code=INVALID_CONTENT_CODE,
            )
        self._end_turn()
        self._end_results()
        summary = _SUMMARY.format(opened.get("summary", ""))
        self._messages.append({"role": "user", "content": summary})

    def _end_turn(self) -> None:
        message = self._turn.take()
        if message is not None:
            self._messages.append(message)

    def _end_results(self) -> None:
        """Add the pictures and files of tool results, which tool messages cannot hold."""
        if self._media:
            self._messages.append({"role": "user", "content": self._media})
            self._media = []


def items_of(value: Mapping[str, Any]) -> list[Any]:
    """Return the `input` of a request as a list of items; a text is one message."""
    given = value.get("input")
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        raise wrong("input", "text or a list of items")
    return given
