"""Implementation of `open_webui.utils.misc`: helper functions that do not call the host."""

import hashlib
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

from gatewayd.events.message_effects import is_kept
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules import messages, templates

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DURATION: Final = re.compile(r"((?:-|(?<!\d))\d++(?:\.\d++)?)(ms|s|m|h|d|w)")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


def deep_update(target: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings recursively in place and return the target."""
    for key, value in changes.items():
        held = target.get(key)
        if isinstance(value, Mapping):
            target[key] = deep_update(dict(held) if isinstance(held, Mapping) else {}, value)
        else:
            target[key] = value
    return target


def calculate_sha256(file: BinaryIO) -> str:
    """Return the SHA-256 of the rest of a binary stream, in hexadecimal."""
    digest = hashlib.sha256()
    while block := file.read(65536):
        digest.update(block)
    return digest.hexdigest()


def calculate_sha256_string(string: str) -> str:
    """Return the SHA-256 of a text encoded as UTF-8, in hexadecimal."""
    return hashlib.sha256(string.encode()).hexdigest()


def get_gravatar_url(email: str) -> str:
    """Return the Gravatar URL of an e-mail address."""
    return f"https://www.gravatar.com/avatar/{calculate_sha256_string(email.strip().lower())}?d=mp"


def validate_email_format(email: str) -> bool:
    """Whether a text has the form of an e-mail address; the domain `localhost` is accepted."""
    return _EMAIL.fullmatch(email) is not None and (
        email.endswith("@localhost") or "." in email.rpartition("@")[2].strip(".")
    )


def sanitize_filename(file_name: str) -> str:
    """Return a file name in lower case, blanks replaced by `-`, other special characters removed."""
    name = Path(file_name.lower())
    stem = re.sub(r"[^\w\s-]", "", name.stem)
    return re.sub(r"\s+", "-", stem.strip()) + name.suffix


def parse_duration(duration: str) -> timedelta | None:
    """Return a duration such as `1h30m`; None for `-1` and `0`, no limit. Raises ValueError."""
    if duration in ("-1", "0"):
        return None
    found = _DURATION.findall(duration)
    if not found:
        raise ValueError(f"cannot parse duration {duration!r}")
    return sum((float(number) * _UNITS[unit] for number, unit in found), timedelta())


def convert_logit_bias_input_to_json(logit_bias_input: str | None) -> str | None:
    """Return `token:bias, ...` as JSON text, each bias clamped to -100 to 100."""
    if not logit_bias_input:
        return None
    pairs = (pair.split(":") for pair in logit_bias_input.split(","))
    inner = ", ".join(f'"{token.strip()}": {_bounded(int(bias))}' for token, bias in pairs)
    return f"{{{inner}}}"


def is_string_allowed(string: str | list[str], filter_list: list[str] | None = None) -> bool:
    """Whether the texts end with one of the suffixes and with none of those marked by `!`."""
    texts = [string] if isinstance(string, str) else string
    wanted = [end for end in filter_list or () if not end.startswith("!")]
    refused = [end[1:] for end in filter_list or () if end.startswith("!")]
    if wanted and not any(text.endswith(end) for text in texts for end in wanted):
        return False
    return not any(text.endswith(end) for text in texts for end in refused)


def is_saved_chat_id(chat_id: str | None) -> bool:
    """Whether a chat id is the id of a stored chat, not of a temporary one."""
    return is_kept(str(chat_id or ""))


def _bounded(bias: int) -> int:
    return max(-100, min(100, bias))


_FUNCTIONS: Final = (
    messages.get_content_from_message,
    messages.get_last_user_message_item,
    messages.get_last_user_message,
    messages.get_last_assistant_message_item,
    messages.get_last_assistant_message,
    messages.get_system_message,
    messages.remove_system_message,
    messages.pop_system_message,
    messages.update_message_content,
    messages.replace_system_message_content,
    messages.add_or_update_system_message,
    messages.add_or_update_user_message,
    messages.prepend_to_first_user_message_content,
    messages.append_or_update_assistant_message,
    messages.get_message_list,
    messages.get_messages_content,
    templates.openai_chat_message_template,
    templates.openai_chat_chunk_message_template,
    templates.openai_chat_completion_message_template,
    deep_update,
    calculate_sha256,
    calculate_sha256_string,
    get_gravatar_url,
    validate_email_format,
    sanitize_filename,
    parse_duration,
    convert_logit_bias_input_to_json,
    is_string_allowed,
    is_saved_chat_id,
)


def make_misc(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.misc`."""
    return {function.__name__: function for function in _FUNCTIONS}
