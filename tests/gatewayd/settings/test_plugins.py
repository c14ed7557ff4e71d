"""The settings of plugins, tool servers, events and stored chats."""

import pytest
from pydantic import ValidationError

from gatewayd.settings.plugins import PluginFields


def test_the_headers_have_the_names_of_the_contract() -> None:
    """The two names of 6.4 are the defaults, in any case (RFC 9110, section 5.1)."""
    fields = PluginFields()
    assert fields.forward_session_info_header_chat_id == "x-service-chat-id"
    assert fields.forward_session_info_header_message_id == "x-service-message-id"
    assert not fields.enable_forward_user_info_headers


@pytest.mark.parametrize("text", ["{}", "[1]", "nonsense"])
def test_tool_servers_are_a_list_of_objects(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValidationError, match="JSON"):
        PluginFields(tool_server_connections=text)
