from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.settings import ConfigurationError, OriginKind, Settings, load

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]
File = Callable[..., Path]

ONE, TWO = "1" * 32, "2" * 32


def test_nothing_configured_gives_the_defaults(tmp_path: Path) -> None:
    settings = load(None, {}, default_file=tmp_path / "none.toml")
    assert settings == Settings()
    assert settings.warnings == ()
    assert not any(origin.explicit for origin in settings.origins.values())


def test_each_layer_wins_over_the_one_below(file: File, tmp_path: Path) -> None:
    main = file('webui_name = "main"\n')
    environ: dict[str, str] = {}
    assert load(main, environ).webui_name == "main"
    file('webui_name = "b"', "conf.d/20-b.toml")
    file('webui_name = "a"', "conf.d/10-a.toml")
    file('webui_name = "ignored"', "conf.d/30.toml.bak")
    assert load(main, environ).webui_name == "b"
    environ = {"WEBUI_NAME": "variable"}
    assert load(main, environ).webui_name == "variable"
    environ["WEBUI_NAME_FILE"] = str(file("named file\n", "name"))
    assert load(main, environ).webui_name == "named file"
    environ["CREDENTIALS_DIRECTORY"] = str(file("credential\n", "credentials/webui-name").parent)
    assert load(main, environ).webui_name == "credential"
    assert load(main, environ, {"webui_name": "option"}).webui_name == "option"


def test_origins_tell_the_place_of_each_value(file: File) -> None:
    main = file('# a comment\nwebui_name = "x"\nport = 1\n')
    drop_in = file("\n\nhost = 'localhost'", "conf.d/a.toml")
    credential = file("s" * 32, "credentials/webui_secret_key")
    admin = file("a@example.org", "mail")
    origins = load(
        main,
        {
            "PORT": "2",
            "GATEWAYD_ENV": "dev",
            "STATE_DIRECTORY": "/var/lib/one:/var/lib/two",
            "CREDENTIALS_DIRECTORY": str(credential.parent),
            "ADMIN_EMAIL_FILE": str(admin),
        },
        {"control_group": "staff"},
    ).origins
    assert {name: origin.text for name, origin in origins.items() if origin.text != "default"} == {
        "webui_name": f"file {main} line 2",
        "host": f"file {drop_in} line 3",
        "port": "environment PORT",
        "env": "environment GATEWAYD_ENV",
        "data_dir": "default in STATE_DIRECTORY",
        "webui_secret_key": "credential webui_secret_key",
        "admin_email": f"file {admin} named by environment ADMIN_EMAIL_FILE",
        "control_group": "command line",
    }
    assert origins["data_dir"].explicit is False
    assert origins["port"].explicit is True
    assert origins["webui_name"].line == 2
    assert origins["control_group"].kind is OriginKind.COMMAND_LINE


def test_every_problem_of_every_layer_is_reported_at_once(file: File, tmp_path: Path) -> None:
    main = file("port = 'abc'\nprot = 1\nopenai_api_keys = ['1', '2']\n")
    file("a = [\n", "conf.d/a.toml")
    with pytest.raises(ConfigurationError) as caught:
        load(main, {"PORT": "9000", "HOST": "\n", "GATEWAYD_POTR": "1"}, {"nosuch": 1})
    found = [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]
    assert found == [
        "conf.d/a.toml:1: cannot read the line as TOML: expected a value: text in quotes, "
        "a number, true, false or a list, at the end of the file",
        "gatewayd.toml:1: cannot use port = 'abc': expected a whole number, from 0 to 65535",
        "gatewayd.toml:2: unknown setting prot, did you mean port?",
        "gatewayd.toml:3: cannot use 2 openai_api_keys with 0 openai_api_base_urls: each key needs an"
        " address",
        "cannot use environment GATEWAYD_POTR: there is no such setting, did you mean GATEWAYD_PORT?",
        "unknown setting nosuch",
        "cannot use environment HOST = '\\n': expected one line of text",
    ]
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    problem = caught.value.problems[1]
    assert (problem.file, problem.line, problem.key) == (main, 1, "port")


def test_a_value_hidden_by_a_higher_layer_is_still_checked(
    problems: Callable[..., list[str]],
) -> None:
    assert problems("port = 70000", {"PORT": "80"}) == [
        "gatewayd.toml:1: cannot use port = 70000: expected a whole number, from 0 to 65535"
    ]


def test_a_bad_value_causes_no_second_problem(problems: Callable[..., list[str]]) -> None:
    found = problems("webui_auth_cookie_same_site = 'none'\nwebui_auth_cookie_secure = 5")
    assert found == ["gatewayd.toml:2: cannot use webui_auth_cookie_secure = 5: expected true or false"]


def test_overrides_are_checked_like_everything_else(problems: Callable[..., list[str]]) -> None:
    assert problems("", {}, {"data_dir": Path("here"), "prot": 1}) == [
        "unknown setting prot, did you mean port?",
        "cannot use data_dir: expected an absolute path",
    ]


def test_overrides_take_values_of_the_settings_own_types(
    load_text: Callable[..., Settings], tmp_path: Path
) -> None:
    settings = load_text("", {}, {"data_dir": tmp_path, "port": 0, "builtin_model_path": None})
    assert settings.data_dir == tmp_path
    assert settings.origins["port"].text == "command line"


def test_a_written_value_that_an_override_hides_is_told(
    load_text: Callable[..., Settings], tmp_path: Path
) -> None:
    overrides = {"host": "127.0.0.1", "port": 1, "database_url": "", "webui_secret_key": ""}
    environ = {"STATE_DIRECTORY": "/state", "PORT": "1", "WEBUI_SECRET_KEY": "k" * 40}
    settings = load_text("host = '::'", environ, {**overrides, "data_dir": tmp_path})
    assert settings.host == "127.0.0.1"
    assert list(settings.warnings) == [
        f"host of file {tmp_path / 'gatewayd.toml'} line 1 is not used: the command line decides it",
        "webui_secret_key of environment WEBUI_SECRET_KEY is not used: the command line decides it",
    ]


def test_no_file_is_read_where_there_is_no_default(file: File) -> None:
    file("port = 2")
    assert load(None, {}, default_file=None).port == 8080


def test_the_default_file_and_its_drop_ins_are_read_when_present(file: File, tmp_path: Path) -> None:
    default = tmp_path / "gatewayd.toml"
    file("port = 2", "conf.d/a.toml")
    assert load(None, {}, default_file=default).port == 2
    file("host = '::1'")
    assert load(None, {}, default_file=default).host == "::1"


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "no.toml"
    with pytest.raises(ConfigurationError) as caught:
        load(path, {})
    assert [str(problem) for problem in caught.value.problems] == [
        f"{path}: cannot read the file: no such file or directory"
    ]


# The file of SCIM tokens


def with_scim(path: Path | None = None) -> str:
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
    settings = load_text(f"{with_scim()}data_dir = '{tmp_path}'")
    assert tokens(settings) == [ONE, TWO]
    assert settings.origins["scim_token"].text == f"file {path}"
    assert settings.origins["scim_token"].kind is OriginKind.CREDENTIAL
    assert not settings.is_scim_token_external
    assert settings.warnings == ()


@pytest.mark.parametrize("variable", ["SCIM_TOKEN_FILE", "GATEWAYD_SCIM_TOKEN_FILE"])
def test_the_file_that_the_environment_names(load_text: Load, file: File, variable: str) -> None:
    path = file(ONE, "elsewhere")
    settings = load_text(with_scim(), {variable: str(path)})
    assert (tokens(settings), settings.scim_token_path()) == ([ONE], path)
    assert settings.origins["scim_token_file"].text == f"environment {variable}"


def test_a_token_that_is_set_wins_over_the_file(load_text: Load, file: File) -> None:
    text = with_scim(file(ONE, "elsewhere"))
    settings = load_text(text, {"SCIM_TOKEN": TWO})
    assert tokens(settings) == [TWO]
    assert settings.is_scim_token_external
    assert tokens(load_text(text, {"SCIM_TOKEN": ""})) == [ONE]


def test_the_file_may_be_absent_or_empty(load_text: Load, file: File, tmp_path: Path) -> None:
    for path in (tmp_path / "no", tmp_path / "no" / "no", file("", "empty")):
        settings = load_text(with_scim(path))
        assert tokens(settings) == []
        assert not settings.is_scim_token_external
        assert settings.warnings == ()


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
    assert problems(with_scim(file(content, "elsewhere"))) == [f"elsewhere: {sentence}"]


def test_a_file_that_cannot_be_read(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert problems(with_scim(tmp_path / "folder")) == [
        "folder: cannot read folder for scim_token: is a directory"
    ]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    [problem] = problems(with_scim(loop))
    assert problem.startswith("loop: cannot read loop for scim_token: too many levels")


def test_an_open_file_and_a_short_token_are_warned_of(load_text: Load, file: File) -> None:
    path = file("short", "elsewhere", mode=0o644)
    assert load_text(with_scim(path)).warnings == (
        f"{path} holds a secret and everybody may read it (mode 0644, should be 0640)",
        "scim_token is shorter than 32 characters, a random one is harder to guess",
    )
