"""The HTML, the manifest and the service worker of the page, made of its templates."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from string import Template
from typing import Final

from gatewayd.http.web.assets import STYLE, PageAsset, PageAssets, suffix_of
from gatewayd.http.web.languages import direction_of
from gatewayd.http.web.modules import EARLY, MAIN, import_map, import_names, needed_files
from gatewayd.http.web.policies import PageRules, page_policy


class ViewKind(StrEnum):
    """Kinds of views by what the page loads for them at once."""

    CHAT = "chat"
    OTHER = "other"
    SIGN_IN = "sign-in"


SIDEBAR: Final = "#app/sidebar/view"
ENTRIES: Final[Mapping[ViewKind, Sequence[str]]] = {
    ViewKind.CHAT: (MAIN, SIDEBAR, "#app/chat/view"),
    ViewKind.OTHER: (MAIN, SIDEBAR),
    ViewKind.SIGN_IN: (MAIN, "#app/signin/view"),
}
"""Modules that the page loads before it knows that it needs them."""

THEMES: Final = ("auto", "light", "dark")
SCHEMES: Final = {"auto": "light dark", "light": "light", "dark": "dark"}


@dataclass(frozen=True, slots=True)
class PageVariant:
    """What the HTML of a view depends on."""

    language: str
    theme: str
    kind: ViewKind


class PageDocuments:
    """The documents of one set of files."""

    def __init__(self, assets: PageAssets, *, name: str, rules: PageRules) -> None:
        self._assets = assets
        self._name = name
        self._rules = rules
        self._names = import_names(assets)
        self._map = import_map(assets, self._names)
        self._made: dict[PageVariant, PageAsset] = {}
        self._kept: dict[str, PageAsset] = {}
        self.policy: Final = page_policy(rules, [self._map])
        """The content policy of the HTML."""
        self.languages: Final = tuple(
            file.removeprefix("languages/").removesuffix(".json") for file in assets.names("languages")
        )

    def index(self, variant: PageVariant) -> PageAsset:
        """Return the HTML of a view."""
        made = self._made.get(variant)
        if made is None:
            made = self._made[variant] = document(self._index(variant), "text/html")
        return made

    def _index(self, variant: PageVariant) -> str:
        preloads = "\n".join(
            f'<link rel="modulepreload" href="{self._address(file)}">'
            for file in needed_files(self._assets, self._names, ENTRIES[variant.kind])
            if suffix_of(file) in {".js", ".mjs"}
        )
        return Template(self._assets.text("index.html")).substitute(
            self._common(variant.language),
            theme=variant.theme,
            scheme=SCHEMES[variant.theme],
            kind=variant.kind.value,
            execute=json.dumps(self._rules.execute),
            own_module=json.dumps("#own/module" in self._names),
            embed_hosts=escape(" ".join(self._rules.embed_hosts)),
            messages=self._address(f"languages/{variant.language}.json"),
            icon=self._address("icons/icon.svg"),
            touch_icon=self._address("icons/icon-192.png"),
            import_map=self._map,
            preloads=preloads,
            early=self._address(self._names[EARLY]),
            main=self._address(self._names[MAIN]),
        )

    def offline(self, language: str) -> PageAsset:
        """Return the HTML that the service worker shows without a connection."""
        return self._once(f"offline.html {language}", "text/html", lambda: self._offline(language))

    def _offline(self, language: str) -> str:
        return Template(self._assets.text("offline.html")).substitute(self._common(language))

    def _common(self, language: str) -> dict[str, str]:
        words = json.loads(self._assets.text(f"languages/{language}.json"))["common"]
        return {
            "language": language,
            "direction": direction_of(language),
            "name": escape(self._name),
            "style": self._address(STYLE),
            "no_script": escape(words["noScript"]),
            "offline_title": escape(words["offlineTitle"]),
            "offline_text": escape(words["offlineText"]),
            "try_again": escape(words["tryAgain"]),
        }

    def frame(self) -> PageAsset:
        """Return the empty document of embeds."""
        return self._once("frame.html", "text/html", lambda: self._assets.text("frame.html"))

    def picture(self) -> PageAsset:
        """Return the document of a picture of another host."""
        return self._once("picture.html", "text/html", lambda: self._assets.text("picture.html"))

    def service_worker(self) -> PageAsset:
        """Return the service worker, which differs with each set of files."""
        return self._once("service-worker.js", "text/javascript", self._service_worker)

    def _service_worker(self) -> str:
        return self._assets.text("service-worker.js").replace("$release", self._assets.release)

    def manifest(self) -> PageAsset:
        """Return the manifest of the installed page (W3C Web Application Manifest)."""
        return self._once("manifest", "application/manifest+json", self._manifest)

    def _manifest(self) -> str:
        icons = [
            {"src": self._address(f"icons/icon-{size}.png"), "sizes": f"{size}x{size}", "type": "image/png"}
            for size in (192, 512)
        ]
        maskable = {"src": self._address("icons/maskable-512.png"), "sizes": "512x512", "purpose": "maskable"}
        described = {
            "id": "/",
            "name": self._name,
            "short_name": self._name[:12],
            "start_url": "/",
            "scope": "/",
            "display": "standalone",
            "background_color": "#ffffff",
            "theme_color": "#ffffff",
            "icons": [*icons, {**maskable, "type": "image/png"}],
        }
        return json.dumps(described)

    def _once(self, name: str, media_type: str, make: Callable[[], str]) -> PageAsset:
        """Return a document that is made, and thereby encoded, once."""
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = document(make(), media_type)
        return kept

    def _address(self, file: str) -> str:
        return self._assets.asset(file).address


def document(text: str, media_type: str) -> PageAsset:
    """Return a document without an address of its own; its digest is its entity tag."""
    data = text.encode()
    return PageAsset("", data, hashlib.sha256(data).hexdigest()[:32], media_type)
