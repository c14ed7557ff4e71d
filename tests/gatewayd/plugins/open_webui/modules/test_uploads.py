import asyncio
import base64
import http.server
import inspect
import threading
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from fastapi import HTTPException, UploadFile
from starlette.datastructures import Headers
from starlette.responses import FileResponse

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.modules.uploads import (
    get_image_data,
    load_b64_image_data,
    load_url_image_data,
)
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home

PICTURE = b"\x89PNG picture"


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.routers.files import upload_file_handler, get_file_by_id\n"
            "from open_webui.routers.files import get_file_content_by_id\n"
            "from open_webui.routers.images import upload_image, image_generations, GenerateImageForm\n"
            "from open_webui.routers.images import image_edits\n"
            "from open_webui.models.users import UserModel\n"
        )
    )[0]


def picture() -> UploadFile:
    return UploadFile(
        file=BytesIO(PICTURE), filename="cat.png", headers=Headers({"content-type": "image/png"})
    )


async def test_a_file_is_stored(module: Any, host: PluginHost) -> None:
    user = module.UserModel(id="ada", role="user")

    async def plugin() -> Any:
        return await module.upload_file_handler(
            request=None, file=picture(), metadata={"chat_id": "c1"}, process=False, user=user
        )

    assert inspect.iscoroutinefunction(module.upload_file_handler)
    item = await at_home(plugin)
    assert item.id == item["id"] == item.get("id") == dict(item)["id"] == "f1"
    assert ("id" in item, "none" in item) == (True, False)
    assert item.get("none", 3) == 3
    kept = await host.files.find("f1") or {}
    assert (kept["user_id"], kept["filename"]) == ("ada", "cat.png")
    assert kept["meta"] == {"name": "cat.png", "content_type": "image/png", "data": {"chat_id": "c1"}}
    assert kept["data"] == {}
    path = await host.files.path("f1")
    assert path is not None
    assert await asyncio.to_thread(path.read_bytes) == PICTURE


async def test_processing_is_asked_for_or_waited_for(module: Any, host: PluginHost) -> None:
    async def plugin() -> tuple[Any, Any]:
        later = await module.upload_file_handler(None, picture(), '{"a": 1}', True, user={"id": "ada"})
        now = await module.upload_file_handler(
            None, picture(), process=True, process_in_background=False, user={"id": "ada"}
        )
        return later, now

    later, now = await at_home(plugin)
    assert later.data["status"] == "pending"
    assert later.meta["data"] == {"a": 1}
    assert now.data["status"] == "completed"
    assert host.files.processed == [(now.id, None)]  # type: ignore[attr-defined]


async def test_the_owner_must_be_known(module: Any) -> None:
    async def plugin() -> None:
        await module.upload_file_handler(None, picture())

    with pytest.raises(TypeError, match="the user is missing"):
        await at_home(plugin)


async def test_files_are_for_their_owner_and_administrators(module: Any) -> None:
    async def plugin() -> tuple[Any, Any]:
        await module.upload_file_handler(None, picture(), user={"id": "bob"}, process=False)
        # The role is that of the account now, not the one of a record that the plugin has.
        others = [{"id": "eve", "role": "user"}, {"id": "eve", "role": "admin"}]
        for user in (*others, module.UserModel(id="eve", role="admin")):
            with pytest.raises(HTTPException) as refused:
                await module.get_file_by_id("f1", user=user)
            assert refused.value.status_code == 404
        with pytest.raises(HTTPException):
            await module.get_file_by_id("f9", user={"id": "ada", "role": "admin"})
        file = await module.get_file_by_id("f1", user={"id": "ada", "role": "admin"})
        return file, await module.get_file_content_by_id("f1", user={"id": "bob", "role": "user"})

    file, content = await at_home(plugin)
    assert file.filename == "cat.png"
    assert isinstance(content, FileResponse)
    assert content.media_type == "image/png"
    assert str(content.path) == file.path


async def test_a_picture_is_stored_and_none_is_made(module: Any, host: PluginHost) -> None:
    async def plugin() -> Any:
        for missing in (module.image_generations, module.image_edits):
            with pytest.raises(NotProvidedError, match="is not provided by this gateway"):
                await missing(None, module.GenerateImageForm(prompt="a cat"), user={"id": "ada"})
        return await module.upload_image(None, PICTURE, "image/png", {"chat_id": "c1"}, {"id": "ada"})

    assert await at_home(plugin) == "/api/v1/files/f1/content"
    assert (await host.files.find("f1") or {})["filename"] == "generated-image.png"
    # Older plugins do not await it.
    plain = await in_thread(
        lambda: module.upload_image(None, PICTURE, "image/png", {}, user={"id": "ada"}, db=None)
    )
    assert plain == "/api/v1/files/f2/content"
    assert await plain == plain


async def test_pictures_in_base64() -> None:
    text = base64.b64encode(PICTURE).decode()
    assert load_b64_image_data(text) == (PICTURE, "image/png")
    assert get_image_data(f"data:image/webp;base64,{text}") == (PICTURE, "image/webp")
    assert load_b64_image_data("no base64!") is None


class Pictures(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind = "image/png" if self.path == "/cat" and self.headers["X-Key"] == "k" else "text/html"
        self.send_response(200)
        self.send_header("content-type", f"{kind}; x=1")
        self.end_headers()
        self.wfile.write(PICTURE)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Pictures) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_pictures_by_their_address(site: str) -> None:
    assert get_image_data(f"{site}/cat", {"X-Key": "k"}) == (PICTURE, "image/png")
    with pytest.raises(ValueError, match="as an image: its content type is text/html"):
        load_url_image_data(f"{site}/cat")
