"""The places of a gateway, and what of its configuration is secret."""

from pathlib import Path

from gatewayd.backup.secret_bundle import without_secrets
from gatewayd.offline.place import read_gateway

CONFIGURATION = """
webui_name = "Ours"
metrics_token = "token-of-the-file-0123456789abcdef"
openai_api_keys = ["key-of-the-file"]
tool_server_connections = "[]"

[[providers]]
name = "one"
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
key = "key-of-the-provider"
headers = { "X-Team" = "value-of-the-header" }
"""


def test_secrets_of_a_file_are_secret_though_something_else_is_used(tmp_path: Path) -> None:
    file = tmp_path / "gatewayd.toml"
    file.write_text(CONFIGURATION)
    environ = {
        "DATA_DIR": str(tmp_path / "state"),
        "METRICS_TOKEN": "token-of-a-variable-0123456789abcdef",
        "OPENAI_API_KEYS": "key-of-a-variable",
    }
    place = read_gateway(file, None, environ).place
    text = without_secrets(CONFIGURATION, place.secret_values)
    assert text is not None
    assert "of-the-" not in text
    assert 'webui_name = "Ours"' in text
    assert 'tool_server_connections = "[]"' in text
    assert place.secrets["openai_api_keys"] == "key-of-a-variable"


def test_another_directory_leaves_the_backups_of_the_setting_apart(tmp_path: Path) -> None:
    file = tmp_path / "gatewayd.toml"
    file.write_text(f'data_dir = "{tmp_path}/state"\nbackup_dir = "{tmp_path}/state/nightly"\n')
    place = read_gateway(file, tmp_path / "usb", {}).place
    assert place.backup_dir == tmp_path / "usb"
    for name in ("nightly", "backups"):
        assert place.is_apart(place.data_dir / name)
