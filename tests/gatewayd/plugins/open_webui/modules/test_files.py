import asyncio
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.modules.files import find_file
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


@pytest.fixture
async def module(installed: InstalledModules, host: PluginHost) -> Any:
    await host.files.store("ada", HostUpload("a.txt", b"alpha", "text/plain", {"k": 1}))
    return (
        await load_at_home(
            "from open_webui.models.files import Files, FileForm\n"
            "from open_webui.storage.provider import Storage\n"
        )
    )[0]


async def test_files_are_found_with_the_path_of_their_content(module: Any, host: PluginHost) -> None:
    file = await in_thread(module.Files.get_file_by_id, "f1")
    assert (file.id, file.user_id, file.filename) == ("f1", "ada", "a.txt")
    assert file.meta["content_type"] == "text/plain"
    assert await asyncio.to_thread(Path(file.path).read_bytes) == b"alpha"
    assert await in_thread(module.Storage.get_file, file.path) == file.path
    assert await in_thread(module.Files.get_file_by_id, "f9") is None
    assert await find_file(host, "f9") is None

    async def plugin() -> str:
        return str((await module.Files.get_file_by_id("f1")).filename)

    assert await at_home(plugin) == "a.txt"


async def test_files_of_a_user(module: Any) -> None:
    files = module.Files
    assert (await in_thread(files.get_file_by_id_and_user_id, "f1", "ada")).id == "f1"
    assert await in_thread(files.get_file_by_id_and_user_id, "f1", "bob") is None
    assert [file.id for file in await in_thread(files.get_files_by_user_id, "ada")] == ["f1"]
    assert await in_thread(files.get_files_by_user_id, "bob") == []
    assert [file.id for file in await in_thread(files.get_files)] == ["f1"]
    assert [file.id for file in await in_thread(files.get_files_by_ids, ["f9", "f1"])] == ["f1"]
    assert [file.id for file in await in_thread(files.get_file_metadatas_by_ids, ["f9", "f1"])] == ["f1"]
    assert (await in_thread(files.get_file_metadata_by_id, "f1")).meta["name"] == "a.txt"


async def test_data_and_what_is_kept_beside(module: Any) -> None:
    files = module.Files
    file = await in_thread(files.update_file_data_by_id, "f1", {"content": "the text"})
    assert file.data["content"] == "the text"
    file = await in_thread(files.update_file_metadata_by_id, "f1", {"pages": 2})
    assert (file.meta["pages"], file.meta["name"]) == (2, "a.txt")
    assert await in_thread(files.update_file_data_by_id, "f9", {"content": ""}) is None
    assert await in_thread(files.delete_file_by_id, "f1") is True
    assert await in_thread(files.delete_file_by_id, "f1") is False


async def test_a_plugin_stores_a_file_with_an_id_of_its_own(module: Any, host: PluginHost) -> None:
    source = """
import io
def run(Files, FileForm, Storage):
    content, path = Storage.upload_file(io.BytesIO(b"picture"), "cat.png", {"tag": "x"})
    form = FileForm(
        id="own-id", filename="cat.png", path=path, data={"content": "a cat"},
        meta={"name": "cat.png", "content_type": "image/png", "size": len(content), "data": {"by": "me"}},
    )
    return path, Files.insert_new_file("ada", form)
"""
    plugin, _ = await load_at_home(source)
    path, file = await in_thread(plugin.run, module.Files, module.FileForm, module.Storage)
    assert (file.id, file.user_id, file.filename) == ("own-id", "ada", "cat.png")
    assert file.meta["content_type"] == "image/png"
    assert file.meta["data"] == {"by": "me"}
    assert file.data["content"] == "a cat"
    assert await asyncio.to_thread(Path(file.path).read_bytes) == b"picture"
    assert not await asyncio.to_thread(Path(path).exists)
    assert await file is file


async def test_a_file_of_the_plugins_own_stays_where_it_is(module: Any, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    form = module.FileForm(id="x", filename="own.txt", path=str(own))
    file = await in_thread(module.Files.insert_new_file, "bob", form)
    assert (file.id, file.filename) == ("x", "own.txt")
    assert own.read_text() == "mine"
