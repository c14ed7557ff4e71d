from pathlib import Path

from gatewayd.settings.origins import (
    BUILT_IN,
    FROM_COMMAND_LINE,
    from_credential,
    from_environment,
    from_file,
    from_secret_file,
    from_service_manager,
    from_token_file,
)

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
