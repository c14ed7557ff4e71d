from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.settings import Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]
File = Callable[..., Path]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nport 80\n", "2: expected '=' after a key in a key/value pair"),
        ("port = 1\nport = 2\n", "2: expected each key only once"),
        ("x = 1\n[providers\n", "2: expected ']' at the end of a table declaration"),
        ("# ok\nhost = \n", "2: expected a value: text in quotes, a number, true, false or a list"),
        ('host = """x\n\n', "1: unterminated string, at the end of the file"),
        ("port = 80 81\n", "1: expected newline or end of document after a statement"),
    ],
)
def test_syntax(problems: Problems, text: str, problem: str) -> None:
    line, sentence = problem.split(": ", 1)
    assert problems(text) == [f"gatewayd.toml:{line}: cannot read the line as TOML: {sentence}"]


def test_bytes_that_are_no_text(problems: Problems) -> None:
    assert problems(b"# caf\xc3\xa9\nx = '\xff'") == [
        "gatewayd.toml:2: cannot read the line: expected UTF-8 text"
    ]


def test_unknown_keys(problems: Problems) -> None:
    assert problems("enable_sign_up = true\nPORT = 1\nxyzzy = 1\n\n[server]\nport = 1\n") == [
        "gatewayd.toml:1: unknown setting enable_sign_up, did you mean enable_signup?",
        "gatewayd.toml:2: unknown setting PORT, did you mean port?",
        "gatewayd.toml:3: unknown setting xyzzy",
        "gatewayd.toml:5: unknown setting server",
    ]


def test_aliases_are_keys_too_but_not_beside_the_name(load_text: Load, problems: Problems) -> None:
    assert load_text("enable_api_key = true").enable_api_keys is True
    assert problems("enable_api_keys = true\nenable_api_key = true") == [
        "gatewayd.toml:2: cannot use enable_api_key: the file sets enable_api_keys, another name of the"
        " same setting"
    ]


def test_a_file_that_cannot_be_read(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "conf.d" / "dir.toml").mkdir(parents=True)
    assert problems("") == ["conf.d/dir.toml: cannot read the file: is a directory"]


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("port = 1", False),
        ('webui_secret_key = ""', False),
        (f'webui_secret_key = "{"s" * 32}"', True),
        ('openai_api_keys = ["sk-1"]', True),
        ('database_url = "sqlite:////srv/x.db"', False),
        ('database_url = "postgresql://u:p@h/n"', True),
        ("[[providers]]\nname = 'a'", False),
        ("[[providers]]\nname = 'a'\nkey = 'k'", True),
    ],
)
def test_open_files_with_secrets_are_warned_of(load_text: Load, file: File, text: str, warned: bool) -> None:
    drop_in = file(text, "conf.d/a.toml", mode=0o644)
    expected = (f"{drop_in} holds a secret and everybody may read it (mode 0644, should be 0640)",)
    assert load_text().warnings == (expected if warned else ())


def test_keys_of_providers_from_files_and_credentials(load_text: Load, file: File) -> None:
    file("from-file\n", "keys/one")
    credential = file("from-credential\n", "credentials/two")
    settings = load_text(
        """
        [[providers]]
        name = "one"
        key_file = "keys/one"
        [[providers]]
        name = "two"
        key_credential = "two"
        [[providers]]
        name = "three"
        key = "here"
        [[providers]]
        name = "four"
        """,
        {"CREDENTIALS_DIRECTORY": str(credential.parent)},
    )
    keys = [provider.key.get_secret_value() for provider in settings.providers]
    assert keys == ["from-file", "from-credential", "here", ""]
    assert settings.warnings == ()


def test_an_open_key_file_is_warned_of(load_text: Load, file: File) -> None:
    path = file("k", "key", mode=0o604)
    settings = load_text(f"[[providers]]\nname = 'a'\nkey_file = '{path}'")
    assert settings.warnings == (
        f"{path} holds a secret and everybody may read it (mode 0604, should be 0640)",
    )


def test_keys_that_cannot_be_found(problems: Problems, file: File) -> None:
    file("two words", "words")
    text = """
[[providers]]
name = "a"
key_file = "none"
[[providers]]
name = "b"
key_credential = "x"
[[providers]]
name = "c"
key = "k"
key_file = "none"
[[providers]]
name = "d"
key_file = 5
[[providers]]
name = "e"
key_file = "words"
"""
    assert problems(text) == [
        "gatewayd.toml:4: cannot read key_file 'none': no such file or directory",
        "gatewayd.toml:7: cannot read key_credential 'x': there is no credentials directory, "
        "CREDENTIALS_DIRECTORY is not set",
        "gatewayd.toml:11: cannot use key_file: the provider has key already",
        "gatewayd.toml:14: cannot use providers[3].key_file = 5: expected the path of a file",
        "gatewayd.toml:15: cannot use providers[4].key: expected one word of ASCII characters",
    ]


def test_a_credential_is_no_path(problems: Problems, file: File) -> None:
    directory = file("x", "credentials/x").parent
    [problem] = problems(
        "[[providers]]\nname = 'a'\nkey_credential = '../x'", {"CREDENTIALS_DIRECTORY": str(directory)}
    )
    sentence = "cannot read key_credential '../x': the name of a credential has no directory"
    assert problem == f"gatewayd.toml:3: {sentence}"


@pytest.mark.parametrize(
    "line", ['keys = ["canary word"]', 'headers = { "X-A" = "canary é" }', 'headers = "canary"']
)
def test_a_wrong_secret_of_a_provider_is_not_shown(problems: Problems, line: str) -> None:
    (found,) = problems(f"[[providers]]\nname = 'a'\n{line}")
    assert "canary" not in found
    assert "providers[0]." in found
