"""The files of the page under addresses that have a hash of their content."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from gatewayd.http.responses.content_codings import BROTLI, IDENTITY, encode
from gatewayd.tasks import TaskRegistry

ADDRESS: Final = "/static"
DIGEST_CHARACTERS: Final = 12
"""Hexadecimal digits of the SHA-256 in an address."""

STYLE: Final = "styles/page.css"
"""The style sheets of the page in one file, so that the first paint waits for one request."""

STYLE_ORDER: Final = ("base",)
"""Style sheets that come before the others, which follow by name."""

OWN_MODULE: Final = "own/module.js"
"""The module of the administrators."""

MAX_MODULE_BYTES: Final = 1 << 20

COMMENT: Final = re.compile(r"^[ \t]*(?:/\*.*?\*/|//[^\n]*)[ \t]*$", re.MULTILINE | re.DOTALL)
"""Pattern of comments that have their lines for themselves."""

PAUSE_SECONDS: Final = 2.0
"""Time without work on the files after a first view."""

FIRST_AREAS: Final = frozenset({"common", "signin", "chat", "render", "sidebar", "errors"})
"""Texts of the first views; the others are a file of their own, which the page loads after them."""

MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Types of the files that are served; other files of the folder are templates and licences."""


@dataclass(slots=True)
class PageAsset:
    """One file, with its encoded forms as far as they were asked for."""

    name: str
    data: bytes
    digest: str
    media_type: str
    encoded: dict[str, bytes] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The path of the file, which changes with its content."""
        return f"{ADDRESS}/{self.digest}/{self.name}"


class AssetEncoder:
    """Encodes files once each, one at a time in a thread: a first view asks for eighty at once.

    The first reader gets br of a low quality. When that view is there, a task makes the best one of it.
    """

    def __init__(self, tasks: TaskRegistry, *, pause: float = PAUSE_SECONDS) -> None:
        self._tasks = tasks
        self._pause = pause
        self._working = asyncio.Lock()
        self._rough: list[PageAsset] = []
        self._is_improving = False

    async def content(self, asset: PageAsset, coding: str) -> bytes:
        """Return the bytes of a file in a coding; those of a picture as they are."""
        if coding == IDENTITY or asset.media_type == "image/png":
            return asset.data
        if coding not in asset.encoded:
            async with self._working:
                if coding not in asset.encoded:
                    made = await asyncio.to_thread(encode, asset.data, coding, is_quick=True)
                    asset.encoded[coding] = made
                    if coding == BROTLI:
                        self._improve_later(asset)
        return asset.encoded[coding]

    def _improve_later(self, asset: PageAsset) -> None:
        self._rough.append(asset)
        if not self._is_improving:
            self._is_improving = True
            self._tasks.spawn("files of the page", self._improve(), at_end=self._end)

    async def _improve(self) -> None:
        while self._rough:
            await asyncio.sleep(self._pause)
            batch, self._rough = self._rough, []
            for asset in batch:
                asset.encoded[BROTLI] = await asyncio.to_thread(encode, asset.data, BROTLI)

    def _end(self) -> None:
        self._is_improving = False


class PageAssets:
    """All files of the page, and the templates among them."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        served = {name: data for name, data in sources.items() if suffix_of(name) in MEDIA_TYPES}
        served.pop("service-worker.js", None)
        for name in [name for name in served if name.startswith("languages/")]:
            served |= split_texts(name, served[name])
        sheets = {name: served.pop(name) for name in list(served) if is_style(name)}
        served[STYLE] = b"\n".join(sheets[name] for name in ordered(sheets))
        for name in served:
            if name.startswith("app/") or name == STYLE:
                served[name] = without_comments(served[name])
        self._assets = {name: make_asset(name, data) for name, data in served.items()}
        self._sources = sources
        everything = "".join(sorted(asset.digest for asset in self._assets.values()))
        self.release: Final = hashlib.sha256(everything.encode()).hexdigest()[:DIGEST_CHARACTERS]
        """A name of this set of files."""

    @property
    def all(self) -> Iterable[PageAsset]:
        """The files, in the order of their names."""
        return [self._assets[name] for name in sorted(self._assets)]

    def asset(self, name: str) -> PageAsset:
        """Return a file by its name; raises KeyError."""
        return self._assets[name]

    def find(self, digest: str, name: str) -> PageAsset | None:
        """Return the file of an address; None for an unknown one, and for one of another release."""
        asset = self._assets.get(name)
        return asset if asset is not None and asset.digest == digest else None

    def text(self, name: str) -> str:
        """Return the text of any file of the folder, a template for instance; raises KeyError."""
        return self._sources[name].decode()

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return sorted(name for name in self._sources if name.startswith(f"{folder}/"))


def read_page() -> dict[str, bytes]:
    """Return the files of the page in the package, by their names below its folder."""
    return dict(_read(files("gatewayd").joinpath("web", "page"), ""))


def read_module(path: Path) -> bytes:
    """Return the module of the administrators; raises OSError, and ValueError for one that is too large."""
    with path.open("rb") as file:
        data = file.read(MAX_MODULE_BYTES + 1)
    if len(data) > MAX_MODULE_BYTES:
        raise ValueError(f"it is larger than {MAX_MODULE_BYTES} bytes")
    return data


def _read(folder: Traversable, prefix: str) -> Iterable[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def make_asset(name: str, data: bytes) -> PageAsset:
    """Return the asset of a file."""
    digest = hashlib.sha256(data).hexdigest()[:DIGEST_CHARACTERS]
    return PageAsset(name, data, digest, MEDIA_TYPES[suffix_of(name)])


def without_comments(data: bytes) -> bytes:
    """Return a file of the page's own code without what only its readers need, a fifth of it when encoded.

    Every line keeps its number, so that a failure in the browser names the line of the file.
    """
    return COMMENT.sub(lambda found: "\n" * found[0].count("\n"), data.decode()).encode()


def split_texts(name: str, data: bytes) -> dict[str, bytes]:
    """Return the file of a language in two: the texts of the first views, and the others."""
    words = json.loads(data)
    first = {area: texts for area, texts in words.items() if area in FIRST_AREAS}
    others = {area: texts for area, texts in words.items() if area not in FIRST_AREAS}
    return {
        name: _compact(first),
        name.replace(".json", ".more.json"): _compact(others),
    }


def _compact(words: Mapping[str, Any]) -> bytes:
    return json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()


def suffix_of(name: str) -> str:
    """Return the last suffix of a name, with its dot."""
    return name[name.rfind(".") :] if "." in name else ""


def is_style(name: str) -> bool:
    """Return whether a file is a style sheet of the page itself."""
    return name.startswith("styles/") and suffix_of(name) == ".css"


def ordered(sheets: Iterable[str]) -> list[str]:
    """Return the names of style sheets in the order in which they apply."""
    first = [f"styles/{name}.css" for name in STYLE_ORDER]
    return sorted(sheets, key=lambda name: (first.index(name) if name in first else len(first), name))
