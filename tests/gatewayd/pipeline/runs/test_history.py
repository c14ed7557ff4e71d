"""Tests for gatewayd.pipeline.runs.history."""

from typing import Any

from gatewayd.pipeline.runs.history import strip_details, to_messages

TOOL = '<details type="tool_calls" done="true" id="1">\n<summary>Tool Executed</summary>\n</details>\n'


def test_what_only_readers_see_is_left_out() -> None:
    stored = [
        {"role": "user", "content": "q", "timestamp": 1, "models": ["m"]},
        {"role": "assistant", "content": f"{TOOL}so\n{TOOL}", "done": True},
        {"role": "assistant", "content": ""},
        {"role": "status", "content": "x"},
    ]
    assert to_messages(stored) == [{"role": "user", "content": "q"}, {"role": "assistant", "content": "so"}]


def test_details_of_the_text_itself_stay() -> None:
    assert (
        strip_details("<details><summary>a</summary>b</details>")
        == "<details><summary>a</summary>b</details>"
    )
    assert (
        strip_details(f'a {TOOL}b <details type="mine">c</details>')
        == 'a \nb <details type="mine">c</details>'
    )


def test_question_about_details_is_not_changed() -> None:
    assert to_messages([{"role": "user", "content": TOOL}])[0]["content"] == TOOL


def test_pictures_become_parts() -> None:
    files: list[Any] = [
        {"type": "image", "url": "data:image/png;base64,AA=="},
        {"type": "file", "content_type": "image/png", "url": "https://a.example/b.png"},
        {"type": "image", "url": "/api/v1/files/x"},
        {"type": "file", "id": "f"},
        "nonsense",
    ]
    message = to_messages([{"role": "user", "content": "see", "files": files}])[0]
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "image_url"]
    assert message["content"][1]["image_url"]["url"].startswith("data:")


def test_what_is_not_closed_stays_and_is_read_once() -> None:
    unclosed = '<details type="reasoning"' * 40_000
    assert strip_details(TOOL + unclosed) == unclosed
