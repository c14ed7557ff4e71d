"""Tests for gatewayd.assembly.plugin_routes."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.gateway import assemble
from gatewayd.assembly.plugin_routes import public_plugin_rows
from gatewayd.http.routes import RouteAccess
from gatewayd.settings import load


async def test_functions_are_the_administrators(state: Path) -> None:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        made = await assemble(settings, stack)
        rows = public_plugin_rows(made.services.extensions, made.services.servers, made.services.accounts)
    access = {(row.method, row.path): row.access for row in rows}
    assert access["POST", "/api/v1/functions/create"] is RouteAccess.ADMIN
    assert access["POST", "/api/v1/tools/create"] is RouteAccess.VERIFIED
    assert access["GET", "/api/v1/configs/tool_servers"] is RouteAccess.ADMIN
