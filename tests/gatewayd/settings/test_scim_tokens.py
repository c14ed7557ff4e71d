from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gatewayd.settings import OriginKind, Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]
File = Callable[..., Path]

ONE, TWO = "1" * 32, "2" * 32


def on(path: Path | None = None) -> str:
    named = f"scim_token_file = '{path}'\n" if path else ""
    return f"scim_enabled = true\nscim_auth_provider = 'okta'\n{named}"


def tokens(settings: Settings) -> Sequence[str]:
    return [token.get_secret_value() for token in settings.scim_token]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("''", []),
        (f"'{ONE}'", [ONE]),
        (f"'{ONE} {TWO}'", [ONE, TWO]),
        (f"['{ONE}', '{TWO}']", [ONE, TWO]),
        (f"['', '{TWO}']", [TWO]),
    ],
)
def test_one_token_or_two(load_text: Load, text: str, expected: Sequence[str]) -> None:
    assert tokens(load_text(f"scim_token = {text}")) == expected


def test_lines_of_the_environment_and_of_a_credential(load_text: Load, file: File) -> None:
    assert tokens(load_text("", {"SCIM_TOKEN": f"{ONE}\n{TWO}"})) == [ONE, TWO]
    credential = file(f"{ONE}\n{TWO}\n", "credentials/scim-token")
    assert tokens(load_text("", {"CREDENTIALS_DIRECTORY": str(credential.parent)})) == [ONE, TWO]


@pytest.mark.parametrize("text", ["'a b c'", "['a', 'b', 'c']", "5", "'caf\u00e9'", "[5]", "true"])
def test_what_is_no_token(problems: Problems, text: str) -> None:
    [problem] = problems(f"scim_token = {text}")
    assert "expected a list of at most two words of ASCII characters separated by ' '" in problem


def test_the_file_in_the_data_directory(load_text: Load, file: File, tmp_path: Path) -> None:
    path = file(f"{ONE}\n{TWO}\n", "scim-token")
    settings = load_text(f"{on()}data_dir = '{tmp_path}'")
    assert tokens(settings) == [ONE, TWO]
    assert settings.origins["scim_token"].text == f"file {path}"
    assert settings.origins["scim_token"].kind is OriginKind.CREDENTIAL
    assert not settings.is_scim_token_external
    assert settings.warnings == ()


@pytest.mark.parametrize("variable", ["SCIM_TOKEN_FILE", "GATEWAYD_SCIM_TOKEN_FILE"])
def test_the_file_that_the_environment_names(load_text: Load, file: File, variable: str) -> None:
    path = file(ONE, "elsewhere")
    settings = load_text(on(), {variable: str(path)})
    assert (tokens(settings), settings.scim_token_path()) == ([ONE], path)
    assert settings.origins["scim_token_file"].text == f"environment {variable}"


def test_a_token_that_is_set_wins_over_the_file(load_text: Load, file: File) -> None:
    text = on(file(ONE, "elsewhere"))
    settings = load_text(text, {"SCIM_TOKEN": TWO})
    assert tokens(settings) == [TWO]
    assert settings.is_scim_token_external
    assert tokens(load_text(text, {"SCIM_TOKEN": ""})) == [ONE]


def test_the_file_may_be_absent_or_empty(load_text: Load, file: File, tmp_path: Path) -> None:
    for path in (tmp_path / "no", tmp_path / "no" / "no", file("", "empty")):
        settings = load_text(on(path))
        assert tokens(settings) == []
        assert not settings.is_scim_token_external
        assert settings.warnings == (
            "SCIM clients are refused: there is no SCIM token yet, gatewayctl scim-token create makes one",
        )


def test_the_file_is_not_read_while_scim_is_off(load_text: Load, file: File) -> None:
    settings = load_text(f"scim_token_file = '{file('a b c', 'elsewhere')}'")
    assert tokens(settings) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"a\nb\nc\n",
            "cannot use scim_token: "
            "expected a list of at most two words of ASCII characters separated by ' '",
        ),
        (b"\xff", "cannot read elsewhere for scim_token: it is not UTF-8 text"),
    ],
)
def test_a_malformed_file_is_refused_by_name(
    problems: Problems, file: File, content: bytes, sentence: str
) -> None:
    assert problems(on(file(content, "elsewhere"))) == [f"elsewhere: {sentence}"]


def test_a_file_that_cannot_be_read(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert problems(on(tmp_path / "folder")) == ["folder: cannot read folder for scim_token: is a directory"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    [problem] = problems(on(loop))
    assert problem.startswith("loop: cannot read loop for scim_token: too many levels")


def test_an_open_file_and_a_short_token_are_warned_of(load_text: Load, file: File) -> None:
    path = file("short", "elsewhere", mode=0o644)
    assert load_text(on(path)).warnings == (
        f"{path} holds a secret and everybody may read it (mode 0644, should be 0640)",
        "scim_token is shorter than 32 characters, a random one is harder to guess",
    )
