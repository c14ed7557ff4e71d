"""Implementation of `open_webui.utils.payload`: model parameters and system prompts in requests."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.messages import (
    add_or_update_system_message,
    replace_system_message_content,
)

Convert = Callable[[Any], Any]


def _as_is(value: Any) -> Any:
    return value


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


OPENAI_PARAMETERS: Final[Mapping[str, Convert]] = {
    "temperature": float,
    "top_p": float,
    "min_p": float,
    "max_tokens": int,
    "frequency_penalty": float,
    "presence_penalty": float,
    "reasoning_effort": str,
    "seed": _as_is,
    "stop": _texts,
    "logit_bias": _as_is,
    "response_format": dict,
}
"""Parameters of a completion, with the conversion of their values."""


def apply_system_prompt_to_body(
    system: str | None,
    form_data: dict[str, Any],
    metadata: Mapping[str, Any] | None = None,
    user: Any = None,
    replace: bool = False,
) -> dict[str, Any]:
    """Prepend a system prompt to that of a request, or replace it, and return the request.

    `{{USER_NAME}}`, `{{USER_EMAIL}}` and the variables of the metadata are substituted.
    """
    if not system:
        return form_data
    text = system
    for placeholder, value in _variables(metadata, user).items():
        text = text.replace(placeholder, value)
    messages = form_data.setdefault("messages", [])
    if replace:
        replace_system_message_content(text, messages)
    else:
        add_or_update_system_message(text, messages)
    return form_data


def apply_model_params_to_body(
    params: Mapping[str, Any] | None, form_data: dict[str, Any], mappings: Mapping[str, Convert]
) -> dict[str, Any]:
    """Set the parameters in `mappings` that are not None in a request, and return it."""
    for key, convert in mappings.items():
        value = (params or {}).get(key)
        if value is not None:
            form_data[key] = convert(value)
    return form_data


def apply_model_params_to_body_openai(
    params: Mapping[str, Any] | None, form_data: dict[str, Any]
) -> dict[str, Any]:
    """Return a chat completion request with model parameters; `custom_params` override the others."""
    given = dict(params or {})
    custom = given.pop("custom_params", None) or {}
    return {**apply_model_params_to_body(given, form_data, OPENAI_PARAMETERS), **custom}


def remove_open_webui_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those for Open WebUI itself."""
    ours = {"stream_response", "stream_delta_chunk_size", "function_calling", "reasoning_tags", "system"}
    return {key: value for key, value in params.items() if key not in ours}


def _variables(metadata: Mapping[str, Any] | None, user: Any) -> dict[str, str]:
    found = {str(key): str(value) for key, value in ((metadata or {}).get("variables") or {}).items()}
    for field in ("name", "email"):
        value = user.get(field) if isinstance(user, Mapping) else getattr(user, field, None)
        if value is not None:
            found.setdefault(f"{{{{USER_{field.upper()}}}}}", str(value))
    return found


def make_payload(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.payload`."""
    return {
        "apply_system_prompt_to_body": apply_system_prompt_to_body,
        "apply_model_system_prompt_to_body": apply_system_prompt_to_body,
        "apply_model_params_to_body": apply_model_params_to_body,
        "apply_model_params_to_body_openai": apply_model_params_to_body_openai,
        "remove_open_webui_params": remove_open_webui_params,
    }
