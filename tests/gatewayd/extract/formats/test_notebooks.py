import json

import pytest

from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal


def test_a_notebook_is_markdown_with_code_in_fences() -> None:
    document = reading(documents.notebook(), "a.ipynb")
    assert document.text.rstrip("\n") == (
        f"# Herons\n{documents.SENTENCE}\n\n```\n# count\nprint(count)\n```\n\n```\nseven\n```"
    )
    assert document.parts[0].is_markdown


@pytest.mark.parametrize("end", ["", "\n"], ids=["2", "3"])
def test_notebooks_of_old_have_worksheets(end: str) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Herons"]},
        {"cell_type": "markdown", "source": [f"one{end}", "two"]},
        {"cell_type": "code", "input": [f"a = 7{end}", "a"], "outputs": [{"text": ["7"], "png": "iVBORw0="}]},
    ]
    old = {"nbformat": 3, "metadata": {"name": "x"}, "worksheets": [{"cells": cells}, {}, 7]}
    document = reading(json.dumps(old).encode(), "a.ipynb")
    assert document.text.rstrip("\n") == "## Herons\n\none\ntwo\n\n```\na = 7\na\n```\n\n```\n7\n```"


@pytest.mark.parametrize(
    "cells", [[1, {"cell_type": "code"}, {"source": 7}, {"outputs": {}}], [{"outputs": [None, {"text": 1}]}]]
)
def test_a_notebook_of_other_shapes_has_no_text(cells: object) -> None:
    assert "no text was found" in refusal(json.dumps({"nbformat": 4, "cells": cells}).encode())


def test_json_is_kept_unless_people_cannot_read_it() -> None:
    assert reading(b'{"a":  1}').text == '{"a":  1}\n'
    assert reading(b'{"a": "\\u00e5"}').text == '{\n "a": "å"\n}\n'
    long = json.dumps(list(range(1000))).encode()
    assert reading(long).text.count("\n") > 1000


@pytest.mark.parametrize("text", ['{"a": 1}\n{"a": 2}', "{ no json", "[" * 100_000, "[1" + "0" * 5000 + "]"])
def test_what_only_begins_like_json_is_text(text: str) -> None:
    assert reading(text.encode()).text == text + "\n"
