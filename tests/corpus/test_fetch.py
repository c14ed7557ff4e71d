"""The fetching of documents, over an archive that is made here: what is not as the table says is refused."""

import io
import json
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.corpus import fetch
from tests.corpus.fetch import Archive, Document, FetchError, digest

TEXT = b"The blue heron stands in the shallow water."


def packed(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


class Index:
    """A package index of one archive; counts what it gave."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.given = 0

    def download(self, archive: Archive, folder: Path) -> Path:
        self.given += 1
        path = folder / "a.tar.gz"
        path.write_bytes(self.content)
        return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    made = Index(packed({"a-1/heron.txt": TEXT}))
    archive = Archive("a", "a==1", is_debian=False, sha256=digest(made.content))
    document = Document("birds/heron.txt", "a", "a-1/heron.txt", digest(TEXT), "MIT", "?", "blue heron")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "archives", lambda: {"a": archive})
    monkeypatch.setattr(fetch, "sources", lambda: [document])
    monkeypatch.setattr(fetch, "_download_pypi", made.download)
    return made


def test_a_document_is_fetched_once(index: Index, tmp_path: Path) -> None:
    assert fetch.main([str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "birds" / "heron.txt").read_bytes() == TEXT
    assert fetch.main([]) == 0
    assert index.given == 1


def test_a_spoilt_document_is_fetched_again(index: Index) -> None:
    assert fetch.obtain() == []
    (document,) = fetch.sources()
    path = fetch.cached(document)
    assert path is not None
    path.write_bytes(b"x")
    assert fetch.cached(document) is None
    assert fetch.obtain() == []
    assert index.given == 2


def test_another_archive_is_refused(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    index.content += b"x"
    assert fetch.main([]) == 1
    assert capsys.readouterr().err == "cannot fetch a==1: it is not the one that the table names\n"
    assert list(fetch.cache_dir().iterdir()) == []


@pytest.mark.parametrize(
    ("files", "sentence"),
    [({"a-1/heron.txt": b"other"}, "is not the one"), ({"a-1/egret.txt": TEXT}, "there is no")],
)
def test_another_document_is_refused(
    index: Index, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes], sentence: str
) -> None:
    index.content = packed(files)
    archive = Archive("a", "a==1", is_debian=False, sha256=digest(index.content))
    with pytest.raises(FetchError, match=sentence):
        fetch.unpack(archive)


def test_who_has_another_index_fetches_by_pip(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    archive = Archive("a", "a==1", is_debian=False, sha256=digest(index.content))
    monkeypatch.setattr(fetch, "_download_by_pip", index.download)
    listed = json.dumps({"files": [{"hashes": {"sha256": "0"}, "url": "http://x/"}]}).encode()
    for answer in (URLError("no such host"), listed, b"<html>", b"{}"):
        monkeypatch.setattr(fetch, "_get", partial(answered, answer))
        assert fetch._download_pypi(archive, tmp_path).read_bytes() == index.content
    assert index.given == 4


def answered(answer: bytes | URLError, _url: str, _media_type: str) -> bytes:
    if isinstance(answer, URLError):
        raise answer
    return answer


def test_the_archive_of_the_table_is_taken_from_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = packed({"a-1/heron.txt": TEXT})
    files = [{"hashes": {"sha256": h}, "url": f"http://x/{h}"} for h in ("0", digest(content))]
    pages = {f"{fetch.INDEX}/a/": json.dumps({"files": files}).encode(), files[1]["url"]: content}
    monkeypatch.setattr(fetch, "_get", lambda url, _: pages[str(url)])
    archive = Archive("a", "a==1", is_debian=False, sha256=digest(content))
    assert fetch._download_pypi(archive, tmp_path).read_bytes() == content


def test_the_table_can_be_fetched() -> None:
    names = [source.name for source in fetch.sources()]
    assert len(set(names)) == len(names)
    assert {source.archive for source in fetch.sources()} == fetch.archives().keys()
    assert all(len(source.sha256) == 64 and source.licence for source in fetch.sources())
