from gatewayd.plugins.open_webui.modules.constants import ERROR_MESSAGES, TASKS


def test_tasks_are_text() -> None:
    assert TASKS.TITLE_GENERATION == "title_generation"
    assert f"{TASKS.TAGS_GENERATION}" == str(TASKS.TAGS_GENERATION) == "tags_generation"
    assert "function_calling" in [TASKS.FUNCTION_CALLING]
    assert TASKS("query_generation") is TASKS.QUERY_GENERATION


def test_error_messages_are_text() -> None:
    assert str(ERROR_MESSAGES.NOT_FOUND) == ERROR_MESSAGES.NOT_FOUND.value
    assert ERROR_MESSAGES.DEFAULT("disk full") == "the request failed: disk full"
    assert ERROR_MESSAGES.DEFAULT() == "the request failed"
