from pathlib import Path

from gatewayd.settings.layers import (
    BUILT_IN,
    FROM_COMMAND_LINE,
    LayerSource,
    SettingEntry,
    SettingLayer,
    from_credential,
    from_environment,
    from_file,
    from_secret_file,
    from_service_manager,
    from_token_file,
)
from gatewayd.settings.settings_model import Settings

PATH = Path("/etc/gatewayd/gatewayd.toml")


def test_texts() -> None:
    assert [
        origin.text
        for origin in (
            BUILT_IN,
            from_service_manager("STATE_DIRECTORY"),
            from_file(PATH, 12),
            from_file(PATH, None),
            from_environment("ENABLE_API_KEYS"),
            from_credential("webui-secret-key"),
            from_secret_file("WEBUI_SECRET_KEY_FILE", Path("/run/key")),
            from_token_file(Path("/run/token")),
            FROM_COMMAND_LINE,
        )
    ] == [
        "default",
        "default in STATE_DIRECTORY",
        "file /etc/gatewayd/gatewayd.toml line 12",
        "file /etc/gatewayd/gatewayd.toml",
        "environment ENABLE_API_KEYS",
        "credential webui-secret-key",
        "file /run/key named by environment WEBUI_SECRET_KEY_FILE",
        "file /run/token",
        "command line",
    ]


def test_only_defaults_are_not_explicit() -> None:
    assert not BUILT_IN.explicit
    assert not from_service_manager("STATE_DIRECTORY").explicit
    assert from_file(PATH, 1).explicit
    assert FROM_COMMAND_LINE.explicit


PORT = SettingEntry(1, "port", BUILT_IN)
HOST = SettingEntry("h", "host", FROM_COMMAND_LINE)


def test_without_leaves_the_rest() -> None:
    assert SettingLayer({"port": PORT, "host": HOST}).without({"port", "env"}) == SettingLayer({"host": HOST})


def test_a_source_gives_the_values() -> None:
    source = LayerSource(Settings, SettingLayer({"port": PORT}))
    fields = Settings.model_fields
    assert source() == {"port": 1}
    assert source.get_field_value(fields["port"], "port") == (1, "port", False)
    assert source.get_field_value(fields["host"], "host") == (None, "host", False)


def test_the_origin_within_a_value_is_asked_of_its_document() -> None:
    assert HOST.origin_of(("host", 0)) is FROM_COMMAND_LINE
    entry = SettingEntry([], "x", BUILT_IN, lambda place: from_file(Path("/f"), len(place)))
    assert entry.origin_of(("x", 0, "y")).line == 3
