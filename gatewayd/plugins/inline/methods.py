"""Inline form of a plugin method, which runs on the loop of the daemon where possible."""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

import orjson

from gatewayd.plugins.inline.operations import BUILTINS, TYPES, AttributeStorage, InlineOperations
from gatewayd.plugins.inline.translation import operation_name, translate_method
from gatewayd.plugins.runtime.static_attributes import find_shared

MAX_VALUE_BYTES: Final = 16_384
"""Maximum size of a value; a larger one is handled in the thread of the plugin."""

MAX_STEPS: Final = 2_000
"""Maximum steps for one value, a fraction of a millisecond."""

MAX_TOTAL_STEPS: Final = 8_000
"""Maximum steps for all values of one call of `run_all`."""

_OPERATIONS: Final = (
    "add",
    "binary",
    "builtin",
    "compare",
    "each",
    "has",
    "is_a",
    "item",
    "joined",
    "leave",
    "method",
    "own",
    "part",
    "set_own",
    "store",
    "update",
    "valve",
)

_FAILURES: Final = (ArithmeticError, LookupError, NameError, RuntimeError, TypeError, ValueError)
"""Exceptions that end a run; the method then runs in its thread and raises them there."""


class InlineMethod:
    """A translated method; one run at a time, on one loop. `name` is the parameter of its value.

    An aborted run changes nothing.
    """

    def __init__(
        self,
        name: str,
        code: CodeType,
        run: Callable[[Any], Any],
        operations: InlineOperations,
        is_idle: bool,
    ) -> None:
        self.name = name
        self._code = code
        self._run = run
        self._operations = operations
        self._is_idle = is_idle

    def is_of(self, method: Any) -> bool:
        """Whether this is the translation of a method."""
        function = method.__func__ if type(method) is MethodType else None
        return type(function) is FunctionType and function.__code__ is self._code

    @property
    def is_idle(self) -> bool:
        """Whether the method returns its value unchanged."""
        return self._is_idle

    def use_valves(self, valves: Any) -> None:
        """Read the valves from an object that code of the plugin cannot reach."""
        self._operations.fresh_valves = valves

    def run_all(self, values: Sequence[bytes]) -> list[bytes]:
        """Return the results for the leading values that the method can handle inline."""
        left, made = MAX_TOTAL_STEPS, []
        for value in values:
            result = self.run(value, left)
            if result is None:
                break
            made.append(result)
            left -= self._operations.paid
        return made

    def run(self, value: bytes, steps: int = MAX_STEPS) -> bytes | None:
        """Return the result for a JSON object; the same bytes object when it is unchanged.

        None when the method must run in its thread: it aborts, takes too long or fails.
        """
        if len(value) > MAX_VALUE_BYTES:
            return None
        operations, made = self._operations, None
        try:
            operations.begin(min(steps, MAX_STEPS), len(value))
            value_object = orjson.loads(value)
            if type(value_object) is dict and self._run(value_object) is value_object:
                changed = orjson.dumps(value_object) if operations.has_stored else value
                operations.commit()
                made = changed
        except _FAILURES:
            made = None
        operations.end()
        return made

    def change(self, value: Any) -> bool:
        """Let the method change an object in place; return whether it ran.

        False when it must run in its thread; the object is unchanged then.
        """
        operations, is_changed = self._operations, False
        operations.begin(MAX_STEPS)
        try:
            if type(value) is dict and self._run(value) is value:
                operations.commit()
                is_changed = True
        except _FAILURES:
            is_changed = False
        if not is_changed:
            operations.undo()
        operations.end()
        return is_changed


def make_inline(
    instance: Any, method: str, name: str, source: str, valves: type[Any] | None
) -> InlineMethod | None:
    """Return the inline form of a method with the parameter `name`; None when it cannot run inline.

    Called in the thread of the plugin.
    """
    function = find_shared(type(instance), method)
    if type(function) is not FunctionType:
        return None
    translated = translate_method(function, source, name)
    if translated is None:
        return None
    module = function.__globals__
    shadowed = frozenset(one for one in (*BUILTINS, *TYPES, "isinstance") if one in module)
    operations = InlineOperations(
        instance,
        AttributeStorage(type(instance), translated.own),
        None if valves is None else AttributeStorage(valves, translated.valves),
        shadowed,
        translated.nodes,
    )
    names: dict[str, Any] = {operation_name(one): getattr(operations, one) for one in _OPERATIONS}
    run = FunctionType(translated.code, {"__builtins__": {}, **names})
    return InlineMethod(name, function.__code__, run, operations, translated.is_idle)
