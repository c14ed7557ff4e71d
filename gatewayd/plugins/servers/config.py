"""Parser and serializer of tool servers, in the format of the settings and of Open WebUI."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.catalog.access_grants import check_grant, render_grant
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.plugins.servers.records import ServerOrigin, ServerType, ToolServer
from gatewayd.urls import split_url

MASK: Final = "********"
"""Replacement for a secret in replies; in a request it keeps the stored secret."""

MAX_GRANTS: Final = 1000
MAX_KEY_CHARACTERS: Final = 4096
MAX_URL_CHARACTERS: Final = 2048
MAX_NAME_CHARACTERS: Final = 256

KEY_AUTH_TYPES: Final = frozenset({"bearer"})
KEYLESS_AUTH_TYPES: Final = frozenset({"", "none"})

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")


@dataclass(frozen=True, slots=True)
class ConfiguredServers:
    """The tool servers of the settings, and an error sentence for each invalid entry."""

    servers: tuple[ToolServer, ...] = ()
    problems: tuple[str, ...] = ()


def read_connections(text: str) -> ConfiguredServers:
    """Return the servers of the setting TOOL_SERVER_CONNECTIONS; an invalid entry is skipped and reported."""
    servers: dict[str, ToolServer] = {}
    problems = []
    for index, entry in enumerate(_entries(text)):
        try:
            server = read_connection(entry, str(index), ServerOrigin.SETTINGS)
            if server.id in servers:
                raise GatewayError(ErrorKind.CONFLICT, f"another server has the id {server.id!r}")
            servers[server.id] = server
        except GatewayError as error:
            problems.append(f"cannot use tool_server_connections[{index}]: {error.message}")
    return ConfiguredServers(tuple(servers.values()), tuple(problems))


def read_connection(entry: Any, index: str, origin: ServerOrigin = ServerOrigin.DATABASE) -> ToolServer:
    """Return the server of one entry; `index` is its id when `info` has none.

    An entry has `url`, `path`, `type`, `auth_type`, `key`, `headers`, `config`, `info`, `spec_type`, `spec`.
    Raises invalid_request that names the field.
    """
    if not isinstance(entry, dict):
        raise invalid("cannot accept a tool server: expected an object")
    info, config = _object(entry, "info"), _object(entry, "config")
    server_id = str(info.get("id") or index)
    timeout = config.get("timeout")
    server = ToolServer(
        id=server_id,
        name=_text(info, "name") or server_id,
        url=_text(entry, "url"),
        type=_type(entry.get("type") or ServerType.OPENAPI),
        description=_text(info, "description"),
        path=_text(entry, "path") or "openapi.json",
        key=_key(entry),
        headers=_headers(entry.get("headers")),
        spec=_spec(entry),
        functions=_names(config.get("function_name_filter_list")),
        timeout=None if timeout is None else _seconds(timeout),
        is_active=bool(config.get("enable", True)),
        origin=origin,
        grants=_grants(config.get("access_grants")),
    )
    check_server(server)
    return server


def render_connection(server: ToolServer) -> dict[str, Any]:
    """Return a server in the format of `read_connection`, with MASK for its key and header values."""
    config: dict[str, Any] = {
        "enable": server.is_active,
        "access_grants": [render_grant(grant) for grant in server.grants],
        "function_name_filter_list": list(server.functions),
    }
    if server.timeout is not None:
        config["timeout"] = server.timeout
    return {
        "url": server.url,
        "path": server.path,
        "type": server.type.value,
        "auth_type": "bearer" if server.key else "none",
        "key": MASK if server.key else "",
        "headers": dict.fromkeys(server.headers, MASK),
        "config": config,
        "info": {"id": server.id, "name": server.name, "description": server.description},
        "spec_type": "url" if server.spec is None else "json",
        "spec": "" if server.spec is None else json.dumps(server.spec, ensure_ascii=False),
        "origin": server.origin.value,
    }


def check_server(server: ToolServer) -> None:
    """Raise invalid_request for a server that cannot be used, or not safely."""
    if not _ID.fullmatch(server.id):
        expected = "letters, digits, '_', '-' and '.', at most 64"
        raise invalid(f"cannot accept info.id {shorten(server.id)!r}: expected {expected}", param="info.id")
    check_address(server.url, "url")
    if "://" in server.path:
        check_address(server.path, "path")
    if not all("!" <= char <= "~" for char in server.key) or len(server.key) > MAX_KEY_CHARACTERS:
        raise invalid("cannot accept key: it must be visible ASCII characters", param="key")
    if not server.name.isprintable() or len(server.name) > MAX_NAME_CHARACTERS:
        raise invalid(
            f"cannot accept info.name: expected at most {MAX_NAME_CHARACTERS} characters", param="info.name"
        )
    for name, value in server.headers.items():
        if not _HEADER.fullmatch(name) or not value.isprintable():
            raise invalid(f"cannot accept headers: {shorten(name)!r} cannot be sent", param="headers")
    for grant in server.grants:
        check_grant(grant)


def check_address(url: str, field: str) -> None:
    """Raise invalid_request for a URL that is not HTTP, or that contains credentials."""
    refusal = f"cannot accept {field}: "
    try:
        parts = split_url(url[: MAX_URL_CHARACTERS + 1])
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
        parts = split_url("")
    if not is_usable or not url.isprintable() or " " in url or len(url) > MAX_URL_CHARACTERS:
        raise invalid(f"{refusal}expected a URL that starts with http:// or https://", param=field)
    if parts.username is not None or parts.password is not None:
        raise invalid(f"{refusal}it contains credentials, which belong in the key", param=field)


def _entries(text: str) -> Sequence[Any]:
    try:
        entries = json.loads(text or "[]")
    except ValueError as error:
        raise invalid("cannot read tool_server_connections: it is not JSON") from error
    if not isinstance(entries, list):
        raise invalid("cannot read tool_server_connections: expected a list")
    return entries


def _type(value: Any) -> ServerType:
    try:
        return ServerType(value)
    except ValueError as error:
        expected = ", ".join(ServerType)
        raise invalid(f"cannot accept type: expected one of {expected}", param="type") from error


def _key(entry: Mapping[str, Any]) -> str:
    kind = _text(entry, "auth_type") or ("bearer" if entry.get("key") else "none")
    if kind in KEYLESS_AUTH_TYPES:
        return ""
    if kind not in KEY_AUTH_TYPES:
        raise invalid(
            f"cannot accept auth_type {shorten(kind)!r}: expected bearer or none",
            param="auth_type",
        )
    return _text(entry, "key")


def _headers(value: Any) -> dict[str, str]:
    """Return headers, which may be an object or its JSON text."""
    if isinstance(value, str):
        value = _decoded(value, "headers") if value.strip() else {}
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise invalid("cannot accept headers: expected an object of strings", param="headers")
    return {name.strip(): item.strip() for name, item in value.items()}


def _spec(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    if entry.get("spec_type") != "json":
        return None
    spec = entry.get("spec")
    if isinstance(spec, str):
        spec = _decoded(spec, "spec")
    if not isinstance(spec, dict):
        raise invalid("cannot accept spec: expected an object with the OpenAPI description", param="spec")
    return spec


def _names(value: Any) -> tuple[str, ...]:
    """Return function names from a list of strings or one comma-separated string."""
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid(
            "cannot accept config.function_name_filter_list: expected a list of strings",
            param="config.function_name_filter_list",
        )
    return tuple(dict.fromkeys(item.strip() for item in value if item.strip()))


def _grants(value: Any) -> tuple[Grant, ...]:
    param = "config.access_grants"
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_GRANTS:
        raise invalid(f"cannot accept {param}: expected a list of at most {MAX_GRANTS}", param=param)
    return tuple(dict.fromkeys(_grant(item, param) for item in value))


def _grant(value: Any, param: str) -> Grant:
    names = ("principal_type", "principal_id", "permission")
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in names):
        raise invalid(f"cannot accept {param}: expected objects with {', '.join(names)}", param=param)
    return Grant(value["principal_type"], value["principal_id"], value["permission"])


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise invalid("cannot accept config.timeout: expected seconds up to a day", param="config.timeout")
    return float(value)


def _object(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = entry.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"cannot accept {name}: expected an object", param=name)
    return value


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"cannot accept {name}: expected text", param=name)
    return value.strip()


def _decoded(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise invalid(f"cannot accept {name}: it is not JSON", param=name) from error
    except RecursionError as error:
        raise invalid(f"cannot accept {name}: it is nested too deeply", param=name) from error
