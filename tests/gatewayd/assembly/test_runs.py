"""Tests for gatewayd.assembly.runs."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.gateway import assemble, reload
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.settings import load


async def test_a_reload_changes_how_answers_are_kept(state: Path) -> None:
    given = {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"}
    async with AsyncExitStack() as stack:
        gateway = await assemble(load(None, given), stack)
        assert gateway.services.answering.runs.options == RunOptions()
        changed = {"ENABLE_REALTIME_CHAT_SAVE": "true", "ENABLE_TAGS_GENERATION": "false"}
        await reload(gateway, load(None, {**given, **changed}))
        assert gateway.services.answering.runs.options == RunOptions(is_saved_often=True, makes_tags=False)
