"""Changes a chat request to what a family of models takes; pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.completions.records import Body
from gatewayd.dialects.providers.rules import NO_RULES, Rules


def adapt(body: Body, rules: Rules, *, is_converted: bool = False) -> tuple[Body, Sequence[str]]:
    """Return the request for a family, and a sentence for each part that was left out or changed.

    `body` is a chat completion request, and is returned itself if nothing has to be changed; it is never
    modified. With `is_converted` a client of another protocol sent it.
    """
    if rules is NO_RULES and not is_converted:
        return body, ()
    warnings: list[str] = []
    changed: Mapping[str, Any] = body
    dropped = rules.dropped & body.keys()
    if dropped:
        changed = {name: value for name, value in body.items() if name not in dropped}
        warnings += [f"left out {name}: {rules.title} does not take it" for name in sorted(dropped)]
    return (body, ()) if changed is body else (dict(changed), warnings)
