"""Markdown texts for the tests of the renderer: each must end the same, however it arrives."""

from pathlib import Path
from typing import Final

KITCHEN: Final = (Path(__file__).parent / "texts" / "kitchen.md").read_text()

TEXTS: Final = (
    KITCHEN,
    "",
    "One line",
    "a\n\n- b\n- c\n\nd\n\n1. e\n\n2. f\n",
    "text\n---\n\n---\n\ntext\n===\ntext\n- a\n-\n- b",
    "- a\n\n      code in an item\n\n- b\n\n  > quote\n  > more\n\n  ```sh\n  ls\n  ```\n",
    "```\nnever closed\n\n# no heading\n",
    "```python\nprint(1)\n```\nright after\n```\nx\n```\n\n````md\n```js\n1\n```\n````\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nafter\n\n| no | table\n",
    "> a\n> b\nlazy\n\n> c\n>> d\n\ntext\n> e",
    "\\(x\\) and \\(unclosed and $$y$$ and $$\nz\n$$\n\n\\[\na\n=\nb\n\\]\ntext $$ alone\n\n$$\nopen",
    "**bold *both* bold** *a **b*** __c__ _d_ snake_case_word 2*3*4 ** not ** ~~x~~ ~ y ~",
    "[a](https://a.example) [b][c] [d] ![e](https://e.example/p.png) [f](<https://f.example/a b>)\n\n"
    "[c]: https://c.example\n\n[d]: <https://d.example> 'title'\n\n[later][c]",
    "See[^n] and [^m] and [^none].\n\n[^n]: note *one*\n\nmore\n\n[^m]: note\n  two\n[^o]: three",
    "a\r\nb\r\n\r\n- c\r\n- d\r\n\r\n```\r\ne\r\n```\r\n",
    "مرحبا\n\n- عنصر\n- item\n\n> שלום `x`\n\n| أ | b |\n|---|---|\n| c | د |",
    "Cited [1], [2,3] [4] [1](https://a.example) `[1]` [[1]]",
    "# a\n## b\n### c\n#### d\n##### e\n###### f\n####### g\n#h\n# `i` #\n",
    "\n".join(f"- item {number} with *marks* and `code`\n  - nested {number}" for number in range(400)),
    "\n".join(f"{number}. item {number}" for number in range(1, 900)) + "\n\nafter",
    "```js\n" + "const x = `a`;\n" * 900 + "```\n\nafter the code",
    "word *mark* " * 900 + "\n\n" + "plain " * 6_000,
    "|a|b|\n|-|-|\n" + "|cell *x*|`y`|\n" * 700 + "\nafter",
    "|a|b|\n|-|-|\n" + "|cell *x*|`y`|\n" * 4_500 + "\nafter",
    "|a|b|\n|-|-|\n" + "|cell *x*|`y`|\n" * 4_500 + "# heading\n|c|d|\n|-|-|\n|1|2|",
    "|a|b|\n|-|-|\n"
    + "|[x]|said [1]|\n" * 3_000
    + "\n".join(f"\n{number}. see [x]" for number in range(1, 900)),
    "|a|b|\n|-|-|\n" + "|c|d|\n" * 3_000 + "\n" + "".join(f"{number}. see\n" for number in range(1, 2_000)),
    "<b>bold</b> <br> a<br/>b <!-- c --> <script>x</script>\n\n<div>\n\n*in*\n\n</div>\n",
)
