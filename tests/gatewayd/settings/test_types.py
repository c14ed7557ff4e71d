from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gatewayd.settings import types

GOOD: list[tuple[Any, Any, Any]] = [
    (types.Switch, "TRUE", True),
    (types.Switch, "off", False),
    (types.Whole, " 5 ", 5),
    (types.Seconds, "1.5", 1.5),
    (types.OptionalSeconds, "", None),
    (types.OptionalSeconds, None, None),
    (types.Size, "1KiB", 1024),
    (types.Size, 5, 5),
    (types.Lifetime, "1000ms", "1000ms"),
    (types.Lifetime, "1.5h", "1.5h"),
    (types.Url, "https://h:1/a/", "https://h:1/a"),
    (types.UrlOrEmpty, "", ""),
    (types.WebOrigins, "https://a;http://b:1;*", ("https://a", "http://b:1", "*")),
    (types.WebOrigins, "app://obsidian.md;tauri://localhost:1", ("app://obsidian.md", "tauri://localhost:1")),
    (types.MailOrEmpty, "a@b", "a@b"),
    (types.HeaderName, "X-Key", "x-key"),
    (types.LogLevel, "warning", "WARNING"),
    (types.AutoSwitch, True, "true"),
    (types.AutoSwitch, "Auto", "auto"),
    (types.Paths, " /a ,, /b", ("/a", "/b")),
    (types.SparseUrls, ";http://a;;", ("", "http://a")),
    (types.Urls, [], ()),
    (types.OptionalFile, "", None),
]
BAD: list[tuple[Any, Any]] = [
    (types.Switch, 1),
    (types.Switch, "maybe"),
    (types.Whole, True),
    (types.Whole, 1.5),
    (types.Seconds, float("nan")),
    (types.Seconds, "inf"),
    (types.Seconds, False),
    (types.Size, "many"),
    (types.Size, True),
    (types.ProviderName, "p" * 129),
    (types.ProviderName, " okta"),
    (types.ProviderName, "a\nb"),
    (types.Line, "a\nb"),
    (types.Line, "a\x00"),
    (types.Lifetime, "4"),
    (types.Lifetime, "0s"),
    (types.Lifetime, "999ms"),
    (types.Lifetime, "-1"),
    (types.Lifetime, "1h30m"),
    (types.Url, ""),
    (types.Url, "h:80"),
    (types.Url, "http://"),
    (types.Url, "http://h:port"),
    (types.Url, "http://h:99999"),
    (types.Url, "http://u:p@h"),
    (types.Url, "http://h/?q"),
    (types.Url, "http://h/ x"),
    (types.Url, "http://" + "\u0327\u0301" * 500_000),
    (types.Url, "file:///etc"),
    (types.WebOrigins, ["https://a/path"]),
    (types.WebOrigins, ["a"]),
    (types.WebOrigins, ["null"]),
    (types.WebOrigins, ["app://a/b"]),
    (types.WebOrigins, ["https://u:p@a"]),
    (types.MailOrEmpty, "a"),
    (types.HeaderName, "X Key"),
    (types.HeaderName, ""),
    (types.Directory, "relative"),
    (types.Directory, 5),
    (types.SocketPath, "/" + "x" * 107),
    (types.OptionalFile, "relative"),
    (types.AutoSwitch, "maybe"),
    (types.Networks, "10.0.0.1/8"),
    (types.SigningSecret, "x" * 31),
    (types.ProviderKey, "a b"),
    (types.ProviderKey, "\u00fc"),
    (types.DatabaseUrl, "mysql://h/n"),
    (types.DatabaseUrl, "sqlite://"),
    (types.DatabaseUrl, "sqlite:///relative.db"),
    (types.DatabaseUrl, "postgresql://"),
    (types.DatabaseUrl, "/srv/x.db"),
]
SECRETS: list[tuple[Any, str]] = [
    (types.SigningSecret, "x" * 32),
    (types.SigningSecret, ""),
    (types.ProviderKey, "sk-1"),
    (types.DatabaseUrl, ""),
    (types.DatabaseUrl, "sqlite:////srv/x.db"),
    (types.DatabaseUrl, "postgresql://u:p@h:5432/n"),
    (types.DatabaseUrl, "postgres:///n?host=/run/postgresql"),
]


@pytest.mark.parametrize(("kind", "given", "value"), GOOD)
def test_good(kind: Any, given: Any, value: Any) -> None:
    assert TypeAdapter(kind).validate_python(given) == value


@pytest.mark.parametrize(("kind", "given"), BAD)
def test_bad(kind: Any, given: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(given)


@pytest.mark.parametrize(("kind", "given"), SECRETS)
def test_secrets(kind: Any, given: str) -> None:
    secret = TypeAdapter(kind).validate_python(given)
    assert secret.get_secret_value() == given
    assert not given or given not in repr(secret)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2), ("1.5m", 90), ("1h", 3600), ("1d", 86400), ("4w", 2419200)],
)
def test_durations(text: str, seconds: float) -> None:
    assert types.parse_duration(text) == seconds
