"""Prompts for calls: asks the question of a call on the terminal."""

import getpass
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gatewayctl.failures import CommandError
from gatewayctl.prompts import usage
from gatewayctl.sanitize import clean, clean_lines
from gatewayctl.wire.events import Call, CallAnswer


def ask(call: Call) -> CallAnswer:
    """Return the answer from the terminal; raises `cancelled` without one, and the call stays pending.

    Only a web page can run a script, so its result must be given as an option.
    """
    if not sys.stdin.isatty():
        raise usage("cannot ask without a terminal: add --value, --json, --yes, --no or --error")
    data = call.data if isinstance(call.data, Mapping) else {}
    match call.type:
        case "confirmation":
            _tell(data)
            return CallAnswer(result=_line("[y/N] ").strip().lower() in {"y", "yes"})
        case "input":
            _tell(data)
            return CallAnswer(result=_input(data))
        case _:
            raise usage(
                f"cannot answer {call.type!r} at a terminal: give its result with --json, or --error",
                param="--json",
            )


def _input(data: Mapping[str, Any]) -> str:
    form = data.get("input")
    options = _options(form.get("options")) if isinstance(form, Mapping) else []
    if options:
        return _choose(options)
    if data.get("type") == "password":
        return getpass.getpass("(not shown) ", stream=sys.stderr)
    preset = data.get("value")
    default = preset if isinstance(preset, str) else ""
    hint = default or data.get("placeholder")
    prompt = f"[{clean(hint)}] " if isinstance(hint, str) and hint else "> "
    return _line(prompt) or default


def _options(given: Any) -> list[tuple[str, str]]:
    """Return the options of a choice with their labels: they are texts, or `{value, label}`."""
    found = []
    for option in given if isinstance(given, list) else []:
        if isinstance(option, Mapping):
            value = str(option.get("value", ""))
            found.append((value, str(option.get("label") or value)))
        else:
            found.append((str(option), str(option)))
    return found


def _choose(options: Sequence[tuple[str, str]]) -> str:
    for number, (_, label) in enumerate(options, start=1):
        sys.stderr.write(f"{number}. {clean(label)}\n")
    while True:
        said = _line(f"[1-{len(options)}] ").strip()
        if said.isascii() and said.isdigit() and 1 <= int(said) <= len(options):
            return options[int(said) - 1][0]


def _tell(data: Mapping[str, Any]) -> None:
    for name in ("title", "message"):
        value = data.get(name)
        if isinstance(value, str) and value:
            sys.stderr.write(f"{clean_lines(value)}\n")


def _line(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise CommandError("cancelled", "no answer was given: the call still waits")
    return line.rstrip("\r\n")
