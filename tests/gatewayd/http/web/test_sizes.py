"""What a browser loads for the first view of chats is small (compressed), whatever is added to the page."""

from gatewayd.http.responses.content_codings import encode
from gatewayd.http.web.assets import STYLE, PageAssets, read_page
from gatewayd.http.web.documents import ENTRIES, PageDocuments, PageVariant, ViewKind
from gatewayd.http.web.modules import import_names, needed_files
from gatewayd.http.web.policies import PageRules

MAX_FIRST_BYTES = {"br": 130_000, "gzip": 150_000}
"""Browsers take br from HTTPS and from this machine, gzip from anywhere. The answers of the API come
on top: for a reader without chats 4 kB, see tests/bench/page.py."""

MAX_FILES = 100
OTHERS = (STYLE, "languages/ar.json", "icons/sprite.svg", "icons/icon.svg")


def test_first_load() -> None:
    assets = PageAssets(read_page())
    files = [*needed_files(assets, import_names(assets), ENTRIES[ViewKind.CHAT]), *OTHERS]
    documents = PageDocuments(assets, name="gatewayd", rules=PageRules())
    index = documents.index(PageVariant("ar", "auto", ViewKind.CHAT)).data
    for coding, limit in MAX_FIRST_BYTES.items():
        sizes = {name: len(encode(assets.asset(name).data, coding)) for name in files}
        total = sum(sizes.values()) + len(encode(index, coding))
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
        assert total <= limit, (coding, total, largest)
    assert len(files) <= MAX_FILES, "each file is a request: join the smallest modules"
