"""Runtime settings, which an administrator changes while the gateway runs."""

import difflib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import ValueStore
from gatewayd.accounts.records import Role
from gatewayd.accounts.texts import clean_long
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.transactions import after_commit

log = logging.getLogger(__name__)

UNIT_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d|w)")
# Every session expires: -1 and 0 mean the maximum of ten years.
MAX_SESSION_SECONDS: Final = 315_360_000


def parse_lifetime(text: str) -> int:
    """Return the seconds of a duration such as `4w`; `-1` and `0` are the maximum. Raises ValueError."""
    if text in {"-1", "0"}:
        return MAX_SESSION_SECONDS
    match = _DURATION.fullmatch(text)
    seconds = int(float(match[1]) * UNIT_SECONDS[match[2]]) if match else 0
    if seconds < 1:
        raise ValueError("expected -1, 0, or a number and ms, s, m, h, d or w, at least one second")
    return min(seconds, MAX_SESSION_SECONDS)


def _boolean(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError("expected text")
    try:
        return clean_long(value, "value", longest=10_000)
    except GatewayError:
        raise ValueError("expected plain text of at most 10000 characters") from None


def _role(value: Any) -> str:
    if value not in [role.value for role in Role]:
        raise ValueError("expected pending, user or admin")
    return str(value)


def _lifetime(value: Any) -> str:
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    parse_lifetime(text)
    return text


def _address(value: Any) -> str:
    text = _text(value)
    if text and not re.fullmatch(r"https?://[^\s]+", text):
        raise ValueError("expected an http or https address")
    return text.rstrip("/")


@dataclass(frozen=True, slots=True)
class RuntimeSettingDefinition:
    """One setting: its name, its default value and the check of its values.

    `check` returns the value to store and raises ValueError("expected ...").
    """

    name: str
    default: bool | str
    check: Callable[[Any], bool | str]
    summary: str


# Names and order are those of the admin settings body of Open WebUI.
DEFINITIONS: Final[tuple[RuntimeSettingDefinition, ...]] = (
    RuntimeSettingDefinition(
        "SHOW_ADMIN_DETAILS",
        True,
        _boolean,
        "show the e-mail address of the administrator to pending accounts",
    ),
    RuntimeSettingDefinition(
        "ADMIN_EMAIL", "", _text, "the e-mail address shown; empty: that of the first administrator"
    ),
    RuntimeSettingDefinition("WEBUI_URL", "", _address, "the public URL of the gateway"),
    RuntimeSettingDefinition("ENABLE_SIGNUP", True, _boolean, "allow sign-up"),
    RuntimeSettingDefinition("ENABLE_API_KEYS", False, _boolean, "allow the creation and use of API keys"),
    RuntimeSettingDefinition(
        "ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS",
        False,
        _boolean,
        "restrict API keys to the endpoints of API_KEYS_ALLOWED_ENDPOINTS",
    ),
    RuntimeSettingDefinition(
        "API_KEYS_ALLOWED_ENDPOINTS", "", _text, "the endpoints that API keys may use, comma separated"
    ),
    RuntimeSettingDefinition("DEFAULT_USER_ROLE", "pending", _role, "the role of new accounts from sign-up"),
    RuntimeSettingDefinition(
        "DEFAULT_GROUP_ID", "", _text, "the group of new accounts from sign-up; empty: none"
    ),
    RuntimeSettingDefinition("JWT_EXPIRES_IN", "4w", _lifetime, "the lifetime of a session; -1: ten years"),
    RuntimeSettingDefinition("PENDING_USER_OVERLAY_TITLE", "", _text, "the title that pending accounts see"),
    RuntimeSettingDefinition("PENDING_USER_OVERLAY_CONTENT", "", _text, "the text that pending accounts see"),
    RuntimeSettingDefinition(
        "RESPONSE_WATERMARK", "", _text, "a text that the web page appends to copied answers"
    ),
)
_BY_NAME: Final = {definition.name: definition for definition in DEFINITIONS}


@dataclass(frozen=True, slots=True)
class ConfiguredValue:
    """A value from the configuration; `origin` names its source, `explicit` is False for a default."""

    value: Any
    origin: str
    explicit: bool


@dataclass(frozen=True, slots=True)
class RuntimeValue:
    """Current value of a setting: `origin` is `stored` or that of the configuration.

    `configured` is the value after a reset.
    """

    name: str
    value: bool | str
    origin: str
    configured: bool | str
    stored: bool
    summary: str


class RuntimeSettings:
    """Values in force: stored values override configured ones.

    Without `persistent`, explicitly configured values override stored ones and cannot be set. A name that
    `configured` lacks has its default. Values are checked on entry; reads use memory only.
    """

    def __init__(
        self,
        values: ValueStore,
        configured: Mapping[str, ConfiguredValue],
        persistent: bool,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._values = values
        self._persistent = persistent
        self._changes = changes
        self._clock = clock
        self._configured = _configured_all(configured)
        self._stored: dict[str, bool | str] = {}
        self._in_force: dict[str, bool | str] = {}
        self._combine()

    def configure(self, configured: Mapping[str, ConfiguredValue]) -> None:
        """Apply the values of a reloaded configuration; stored values stay."""
        self._configured = _configured_all(configured)
        self._combine()
        self._changes.publish(AccountChange(None))

    async def load(self) -> None:
        """Read the stored values: at start, and after a change by another process."""
        found = await self._values.load()
        stored: dict[str, bool | str] = {}
        for name in _BY_NAME.keys() & found.keys():
            try:
                stored[name] = _BY_NAME[name].check(found[name])
            except ValueError as error:
                log.warning("cannot use a stored setting", extra={"setting": name, "reason": str(error)})
        self._stored = stored
        self._combine()

    def get(self, name: str) -> bool | str:
        """Return the value in force; raise not_found for an unknown name."""
        value = self._in_force.get(name)
        return self.describe(name).value if value is None else value

    def flag(self, name: str) -> bool:
        """Return a boolean value; raise KeyError for an unknown name."""
        return bool(self._in_force[name])

    def text(self, name: str) -> str:
        """Return a text value; raise not_found for an unknown name."""
        return str(self.get(name))

    def session_seconds(self) -> int:
        """Return the lifetime of a new session."""
        return parse_lifetime(self.text("JWT_EXPIRES_IN"))

    def describe(self, name: str) -> RuntimeValue:
        """Return one setting with its origin; raise not_found, with the nearest name, if unknown."""
        definition = _definition(name)
        configured = self._configured[name]
        use_stored = name in self._stored and not self._is_fixed(name)
        return RuntimeValue(
            name=name,
            value=self._stored[name] if use_stored else configured.value,
            origin="stored" if use_stored else configured.origin,
            configured=configured.value,
            stored=name in self._stored,
            summary=definition.summary,
        )

    def list(self) -> Sequence[RuntimeValue]:
        """Return every setting, in the order of the table."""
        return [self.describe(definition.name) for definition in DEFINITIONS]

    def configured_origin(self, name: str) -> str:
        """Return the source of the configured value of a setting."""
        return self._configured[_definition(name).name].origin

    def may_set(self, name: str) -> bool:
        """Tell whether a value can be stored; False if the configuration fixes it."""
        return not self._is_fixed(_definition(name).name)

    def check_settable(self, name: str) -> None:
        """Raise conflict for a setting that the configuration fixes."""
        if not self.may_set(name):
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot set {name}: {self.configured_origin(name)} sets it, and"
                " ENABLE_PERSISTENT_CONFIG is off",
                param=name,
            )

    def known(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values whose names this version knows; clients of other versions send more."""
        return {name: value for name, value in values.items() if name in _BY_NAME}

    def checked(self, values: Mapping[str, Any]) -> dict[str, bool | str]:
        """Return values in their stored form; raise not_found or invalid_request naming the key."""
        return {name: _check(_definition(name), value) for name, value in values.items()}

    async def set(self, values: Mapping[str, Any], by: str) -> None:
        """Store several values as one change; `by` is the id of the actor.

        Raises not_found for an unknown name, invalid_request naming the key for a wrong value, conflict for a
        key that the configuration fixes. Setting such a key to its present value is no error.
        """
        checked = self.checked(values)
        fixed = [name for name in checked if self._is_fixed(name)]
        for name in fixed:
            if checked[name] != self._configured[name].value:
                self.check_settable(name)
            del checked[name]
        if not checked:
            return
        await self._values.put(checked, at=self._clock(), by=by)
        after_commit(lambda: self._keep(checked))
        self._changes.publish(AccountChange(None))

    async def reset(self, names: Sequence[str]) -> int:
        """Delete stored values, so that the configured ones apply; return how many were stored."""
        wanted = [_definition(name).name for name in names]
        removed = await self._values.remove(wanted)
        after_commit(lambda: self._forget(wanted))
        self._changes.publish(AccountChange(None))
        return removed

    def _is_fixed(self, name: str) -> bool:
        return not self._persistent and self._configured[name].explicit

    def _keep(self, values: Mapping[str, bool | str]) -> None:
        self._stored.update(values)
        self._combine()

    def _forget(self, names: Sequence[str]) -> None:
        for name in names:
            self._stored.pop(name, None)
        self._combine()

    def _combine(self) -> None:
        """Recompute the values in force, which every request reads."""
        stored = {name: value for name, value in self._stored.items() if not self._is_fixed(name)}
        self._in_force = {name: each.value for name, each in self._configured.items()} | stored


def _configured_all(configured: Mapping[str, ConfiguredValue]) -> dict[str, ConfiguredValue]:
    return {each.name: _configured(each, configured.get(each.name)) for each in DEFINITIONS}


def _definition(name: str) -> RuntimeSettingDefinition:
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name.upper(), _BY_NAME, n=1)
    hint = f", did you mean {near[0]}" if near else ""
    raise GatewayError(ErrorKind.NOT_FOUND, f"cannot find setting {name!r}{hint}", param=name)


def _check(definition: RuntimeSettingDefinition, value: Any) -> bool | str:
    try:
        return definition.check(value)
    except ValueError as error:
        raise invalid(f"cannot set {definition.name}: {error}", param=definition.name) from None


def _configured(definition: RuntimeSettingDefinition, given: ConfiguredValue | None) -> ConfiguredValue:
    if given is None:
        return ConfiguredValue(definition.default, "default", explicit=False)
    return ConfiguredValue(_check(definition, given.value), given.origin, given.explicit)
