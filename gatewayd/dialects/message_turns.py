"""Turns of protocols in which users and models take turns, and instructions stand apart; pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatewayd.completions.records import Body
from gatewayd.errors import invalid

BlockReader = Callable[[Mapping[str, Any], str], list[Body]]
"""Returns the blocks of a message, whose place in the request is the second argument."""


def split_messages(
    messages: Sequence[Any],
    read_instructions: BlockReader,
    read_answer: BlockReader,
    read_question: BlockReader,
) -> tuple[list[Body], list[Body]]:
    """Return the system blocks and the turns; adjacent messages of one role become one turn.

    Messages without blocks make no turn. Raises invalid_request for a message that is no object, and the
    errors of the readers.
    """
    system: list[Body] = []
    turns: list[Body] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot read {where}: it is not an object", param=where)
        role = message.get("role")
        if role in ("system", "developer"):
            system += read_instructions(message, where)
            continue
        is_answer = role == "assistant"
        blocks = read_answer(message, where) if is_answer else read_question(message, where)
        turn_role = "assistant" if is_answer else "user"
        if blocks and turns and turns[-1]["role"] == turn_role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": turn_role, "content": blocks})
    return system, turns
