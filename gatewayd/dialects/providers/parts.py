"""Changes the roles of instructions and the pictures of a chat request to what a family takes; pure.

The order of messages, their pairs of calls and results, and reasoning in them are the matter of
`gatewayd.dialects.providers.history`.
"""

from typing import Any, Final

from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.rules import ImageForm, Rules

INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})

NO_PICTURE: Final = "[a picture that this model cannot be shown]"
"""Text in place of a picture that a family does not take."""


def adapt_messages(body: Body, rules: Rules, warnings: list[str]) -> Body:
    """Return the request with other messages, or itself if none changes."""
    given = body.get("messages")
    if not isinstance(given, list) or not any(_is_concerned(message, rules) for message in given):
        return body
    messages = [_adapt_message(message, rules, warnings) for message in given]
    if all(new is old for new, old in zip(messages, given, strict=True)):
        return body
    return {**body, "messages": messages}


def _is_concerned(message: Any, rules: Rules) -> bool:
    """Return False for a message that no rule is about, as most are."""
    if not isinstance(message, dict):
        return False
    role = message.get("role")
    if role in INSTRUCTION_ROLES:
        return bool(rules.instructions) and role != rules.instructions
    return isinstance(message.get("content"), list)


def _adapt_message(message: Any, rules: Rules, warnings: list[str]) -> Any:
    if not isinstance(message, dict):
        return message
    if message.get("role") in INSTRUCTION_ROLES:
        return {**message, "role": rules.instructions} if rules.instructions else message
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [_adapt_part(part, rules, warnings) for part in content]
    if all(new is old for new, old in zip(parts, content, strict=True)):
        return message
    return {**message, "content": parts}


def _adapt_part(part: Any, rules: Rules, warnings: list[str]) -> Any:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    url = image if isinstance(image, str) else as_mapping(image).get("url")
    is_address = isinstance(url, str) and url.startswith(("http://", "https://"))
    if rules.images is ImageForm.ANY or (rules.images is ImageForm.DATA and not is_address):
        # Some clients write the address as a text, which few makers take.
        return {**part, "image_url": {"url": image}} if isinstance(image, str) else part
    what = "pictures" if rules.images is ImageForm.NONE else "addresses of pictures"
    sentence = f"left out {what}: {rules.title} does not take them"
    if sentence not in warnings:
        warnings.append(sentence)
    return {"type": "text", "text": NO_PICTURE}
