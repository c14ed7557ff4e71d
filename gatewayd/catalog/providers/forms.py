"""Forms of providers in the format of Open WebUI: parallel lists of addresses, keys and options."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd.catalog.providers.options import MASK, read_options, render_options
from gatewayd.catalog.providers.records import (
    OLLAMA_KIND,
    ManagedProvider,
    ProviderFamily,
    ProviderForm,
)
from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.urls import split_url

MAX_PROVIDERS: Final = 100
"""Maximum number of providers of one family."""

MAX_URL_CHARACTERS: Final = 2048
MAX_KEY_CHARACTERS: Final = 4096
MAX_NAME_CHARACTERS: Final = 64
MAX_PREFIX_CHARACTERS: Final = 64
MAX_MODEL_IDS: Final = 10_000
MAX_MODEL_ID_CHARACTERS: Final = 256

ANTHROPIC_HOST: Final = "api.anthropic.com"
HOSTED_KINDS: Final = {
    "": "",
    "openai": "openai",
    "llama.cpp": "openai",
    "litellm": "openai",
    "anthropic": "anthropic",
    "azure": "azure",
    "gemini": "gemini",
    "bedrock": "bedrock",
}
CONNECTION_TYPE_OF: Final = {OLLAMA_KIND: "local"}
CONNECTION_TYPES: Final = frozenset({"", "external", "local"})
KEY_AUTH_TYPES: Final = frozenset({"", "bearer", "none"})

UNSUPPORTED: Final = ("passthrough_params",)
"""Options of Open WebUI that would change requests, and that the gateway does not have."""

Object = Mapping[str, Any]


def read_form(family: ProviderFamily, sent: Object) -> ProviderForm:
    """Return the form of a request; raises invalid_request that names the field.

    `{"ENABLE_OPENAI_API", "OPENAI_API_BASE_URLS", "OPENAI_API_KEYS", "OPENAI_API_CONFIGS": {"0": {...}}}`, or
    with OLLAMA instead of OPENAI_API, where the keys are in the options. Older clients list the options under
    the addresses.
    """
    urls, options = _texts(sent, urls_name(family)), _options(sent, family)
    keys: Sequence[str | None] = [None] * len(urls)
    if family is ProviderFamily.OPENAI:
        keys = _texts(sent, "OPENAI_API_KEYS", needed=False)
        if len(keys) > len(urls):
            raise _refused("OPENAI_API_KEYS", "there are more keys than addresses")
    padded = [*keys, *[""] * (len(urls) - len(keys))]
    providers = []
    for index, (url, key) in enumerate(zip(urls, padded, strict=True)):
        where = f"{options_name(family)}.{index}"
        own = options.get(str(index), options.get(url, {}))
        if not isinstance(own, dict):
            raise _refused(where, "expected an object")
        providers.append(read_provider(family, url, key, own))
    return ProviderForm(family, tuple(providers), _enabled(sent, family), _revision(sent))


def read_provider(family: ProviderFamily, url: str, key: str | None, options: Object) -> ManagedProvider:
    """Return one provider. A key of None is in the options."""
    url = url.strip().rstrip("/")
    if not url or len(url) > MAX_URL_CHARACTERS:
        raise _refused("base_url", f"expected an address of at most {MAX_URL_CHARACTERS} characters")
    for name in UNSUPPORTED:
        if options.get(name):
            raise _refused(name, "the gateway has no such option")
    auth_type = _text(options, "auth_type", 64)
    if auth_type not in KEY_AUTH_TYPES:
        raise _refused("auth_type", "expected bearer or none")
    token = (_text(options, "key", MAX_KEY_CHARACTERS) if key is None else key.strip()) or ""
    if len(token) > MAX_KEY_CHARACTERS:
        raise _refused("key", f"expected at most {MAX_KEY_CHARACTERS} characters")
    connection_type = _text(options, "connection_type", 64)
    if connection_type not in CONNECTION_TYPES:
        raise _refused("connection_type", "expected external or local")
    prefix = _text(options, "prefix_id", MAX_PREFIX_CHARACTERS)
    return ManagedProvider(
        id=_text(options, "id", 200),
        name=_text(options, "name", MAX_NAME_CHARACTERS),
        kind=_kind(family, url, options),
        base_url=url,
        key="" if auth_type == "none" else token,
        prefix=f"{prefix}." if prefix else "",
        models=_model_ids(options),
        connection_type=connection_type,
        is_active=_flag(options, "enable", default=True),
        options=read_options(options),
    )


def render_form(
    form: ProviderForm, states: Mapping[str, Mapping[str, object]], problems: Mapping[str, str]
) -> dict[str, Any]:
    """Return a form with masked keys; `states` has the models and the problem of sources by name."""
    shown: dict[str, Any] = {
        enable_name(form.family): form.enabled,
        urls_name(form.family): [each.base_url for each in form.providers],
    }
    if form.family is ProviderFamily.OPENAI:
        shown["OPENAI_API_KEYS"] = [MASK if each.has_key else "" for each in form.providers]
    shown[options_name(form.family)] = {
        str(index): _render_options(each, states.get(each.name, {}), problems.get(each.id, ""))
        for index, each in enumerate(form.providers)
    }
    return {**shown, "revision": form.revision}


def urls_name(family: ProviderFamily) -> str:
    """Return the name of a family's list of addresses."""
    return "OLLAMA_BASE_URLS" if family is ProviderFamily.OLLAMA else "OPENAI_API_BASE_URLS"


def options_name(family: ProviderFamily) -> str:
    """Return the name of the object with the options of a family's entries."""
    return f"{family.value.upper()}_API_CONFIGS"


def enable_name(family: ProviderFamily) -> str:
    """Return the name of a family's switch."""
    return f"ENABLE_{family.value.upper()}_API"


def named(provider: ManagedProvider) -> ManagedProvider:
    """Return a provider with a name, by default that of its host."""
    if provider.name:
        return provider
    try:
        host = split_url(provider.base_url).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    return replace(provider, name=(host or provider.kind)[:MAX_NAME_CHARACTERS])


def _render_options(provider: ManagedProvider, state: Mapping[str, object], problem: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "id": provider.id,
        "name": provider.name,
        "enable": provider.is_active,
        "prefix_id": provider.prefix.removesuffix("."),
        "prefix": provider.prefix,
        "model_ids": list(provider.models),
        "connection_type": provider.connection_type or CONNECTION_TYPE_OF.get(provider.kind, "external"),
        "provider": provider.kind,
        "auth_type": "bearer" if provider.has_key else "none",
        "origin": "settings" if provider.origin else "database",
        "locked_by": provider.origin or None,
        "models": state.get("models", 0),
        "problem": problem or provider.problem or state.get("problem"),
        **render_options(provider.options),
    }
    return {**options, "key": MASK if provider.has_key else ""} if provider.kind == OLLAMA_KIND else options


def _kind(family: ProviderFamily, url: str, options: Object) -> str:
    if family is ProviderFamily.OLLAMA:
        return OLLAMA_KIND
    given = _text(options, "provider", 64)
    if given not in HOSTED_KINDS:
        raise _refused("provider", f"expected {', '.join(filter(None, HOSTED_KINDS))}")
    if _flag(options, "azure", default=False):
        return "azure"
    return HOSTED_KINDS[given] or ("anthropic" if ANTHROPIC_HOST in url else "openai")


def _options(sent: Object, family: ProviderFamily) -> Object:
    name = options_name(family)
    value = sent.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > 2 * MAX_PROVIDERS:
        raise _refused(name, 'expected an object such as {"0": {...}}')
    return value


def _enabled(sent: Object, family: ProviderFamily) -> bool | None:
    value = sent.get(enable_name(family))
    if value is not None and not isinstance(value, bool):
        raise _refused(enable_name(family), "expected true or false")
    return value


def _revision(sent: Object) -> int | None:
    value = sent.get("revision")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _refused("revision", "expected a whole number")
    return value


def _texts(sent: Object, name: str, *, needed: bool = True) -> Sequence[str]:
    value = sent.get(name, None if needed else [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _refused(name, "expected a list of texts")
    if len(value) > MAX_PROVIDERS:
        raise _refused(name, f"expected at most {MAX_PROVIDERS}")
    return value


def _model_ids(options: Object) -> tuple[str, ...]:
    value = options.get("model_ids") or []
    if not isinstance(value, list) or len(value) > MAX_MODEL_IDS:
        raise _refused("model_ids", f"expected a list of at most {MAX_MODEL_IDS} ids")
    for item in value:
        if (
            not isinstance(item, str)
            or not 0 < len(item) <= MAX_MODEL_ID_CHARACTERS
            or not item.isprintable()
        ):
            raise _refused(
                "model_ids", f"expected printable texts of at most {MAX_MODEL_ID_CHARACTERS} characters"
            )
    return tuple(dict.fromkeys(value))


def _text(options: Object, name: str, longest: int) -> str:
    value = options.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise _refused(name, f"expected a printable text of at most {longest} characters")
    return value.strip()


def _flag(options: Object, name: str, *, default: bool) -> bool:
    value = options.get(name, default)
    if not isinstance(value, bool):
        raise _refused(name, "expected true or false")
    return value


def _refused(param: str, reason: str) -> GatewayError:
    return invalid(f"cannot accept {shorten(param)}: {reason}", param=param)
