import asyncio
import inspect
import io
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import in_thread, load_at_home


@pytest.fixture
async def storage(installed: InstalledModules) -> Any:
    return (await load_at_home("from open_webui.storage.provider import Storage"))[0].Storage


async def test_a_content_is_kept_and_removed(storage: Any, host: PluginHost) -> None:
    answer = await in_thread(storage.upload_file, io.BytesIO(b"content"), "../../etc/a b.txt", {})
    assert inspect.isawaitable(answer)
    content, path = answer
    assert content == b"content"
    kept = Path(path)
    assert kept.parent == host.data_dir / "uploads"
    assert kept.name.endswith("_a b.txt")
    assert await asyncio.to_thread(kept.read_bytes) == b"content"
    assert await in_thread(storage.get_file, path) == path
    await in_thread(storage.delete_file, path)
    with pytest.raises(FileNotFoundError):
        await in_thread(storage.get_file, path)


async def test_nothing_is_not_kept(storage: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot store 'a\.txt': it is empty"):
        await in_thread(storage.upload_file, io.BytesIO(b""), "a.txt")


async def test_a_files_content_is_found_by_its_id_and_not_removed(storage: Any, host: PluginHost) -> None:
    await host.files.store("ada", HostUpload("a.txt", b"alpha"))
    path = await in_thread(storage.get_file, "f1")
    assert await asyncio.to_thread(Path(path).read_bytes) == b"alpha"
    with pytest.raises(NotProvidedError, match="is not provided by this gateway"):
        await in_thread(storage.delete_file, path)
    assert await asyncio.to_thread(Path(path).exists)
