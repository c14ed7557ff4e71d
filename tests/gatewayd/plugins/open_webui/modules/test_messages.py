from typing import Any

from gatewayd.plugins.open_webui.modules import messages as m

SYSTEM = {"role": "system", "content": "Be brief."}
PARTS = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "look"}]


def talk() -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": [dict(part) for part in PARTS]},
        {"role": "assistant", "content": "four"},
    ]


def test_contents() -> None:
    assert m.get_content_from_message({"content": "x"}) == "x"
    assert m.get_content_from_message({"content": PARTS}) == "look"
    assert m.get_content_from_message({"content": [{"type": "image_url"}]}) is None
    assert m.get_content_from_message({}) is None


def test_last_messages() -> None:
    talked = talk()
    assert m.get_last_user_message(talked) == "look"
    assert m.get_last_user_message_item(talked) is talked[3]
    assert m.get_last_assistant_message(talked) == "four"
    assert m.get_last_assistant_message_item(talked) is talked[4]
    assert m.get_last_user_message([]) is None
    assert m.get_last_user_message_item([SYSTEM]) is None


def test_system_messages() -> None:
    talked = talk()
    system, rest = m.pop_system_message(talked)
    assert system is talked[0] is m.get_system_message(talked)
    assert rest == talked[1:] == m.remove_system_message(talked)
    assert m.pop_system_message(rest) == (None, rest)
    added = m.add_or_update_system_message("First.", talked)
    assert added is talked
    assert talked[0]["content"] == "First.\nBe brief."
    m.add_or_update_system_message("Last.", talked, append=True)
    assert talked[0]["content"] == "First.\nBe brief.\nLast."
    assert m.add_or_update_system_message("New.", [{"role": "user", "content": "x"}])[0] == {
        "role": "system",
        "content": "New.",
    }
    assert m.replace_system_message_content("Only.", talked)[0]["content"] == "Only."


def test_user_and_assistant_messages() -> None:
    talked = talk()
    m.add_or_update_user_message("five", talked)
    assert talked[-1] == {"role": "user", "content": "five"}
    m.add_or_update_user_message("six", talked)
    assert talked[-1]["content"] == "five\nsix"
    m.add_or_update_user_message("zero", talked, append=False)
    assert talked[-1]["content"] == "zero\nfive\nsix"
    m.append_or_update_assistant_message("seven", talked)
    m.append_or_update_assistant_message("eight", talked)
    assert talked[-1] == {"role": "assistant", "content": "seven\neight"}
    m.prepend_to_first_user_message_content("before", talked)
    assert talked[1]["content"] == "before\none"
    assert m.prepend_to_first_user_message_content("x", []) == []


def test_parts_are_kept_when_text_is_added() -> None:
    message: dict[str, Any] = {"role": "user", "content": [dict(part) for part in PARTS]}
    m.update_message_content(message, "after")
    assert message["content"] == [*PARTS, {"type": "text", "text": "after"}]
    m.update_message_content(message, "before", append=False)
    assert message["content"][0] == {"type": "text", "text": "before"}


def test_the_branch_of_a_tree() -> None:
    tree = {
        "a": {"id": "a", "parentId": None},
        "b": {"id": "b", "parentId": "a"},
        "c": {"id": "c", "parentId": "a"},
        "lost": {"id": "lost", "parentId": "gone"},
        "x": {"id": "x", "parentId": "y"},
        "y": {"id": "y", "parentId": "x"},
    }
    assert [message["id"] for message in m.get_message_list(tree, "c")] == ["a", "c"]
    assert [message["id"] for message in m.get_message_list(tree, "lost")] == ["lost"]
    assert [message["id"] for message in m.get_message_list(tree, "x")] == ["y", "x"]
    assert m.get_message_list(tree, None) == m.get_message_list(None, "a") == []


def test_messages_as_lines() -> None:
    assert m.get_messages_content(talk()[1:4]) == "USER: one\nASSISTANT: two\nUSER: look"
