"""Methods inline: they do what the method does, or give up and have done nothing."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest

from gatewayd.plugins.inline.methods import MAX_STEPS, MAX_TOTAL_STEPS, MAX_VALUE_BYTES
from tests.fakes.plugins.inline import Event, Hook

ROOT = Path(__file__).parents[4]

EVENT: Event = {
    "id": "c",
    "n": 3,
    "f": 1.5,
    "none": None,
    "yes": True,
    "choices": [{"index": 0, "delta": {"content": "A secret word"}, "finish_reason": None}],
}

MODEL = "from pydantic import BaseModel"

ALIKE = [
    "return event",
    "'''Text.'''\npass\nreturn event",
    """
    for choice in event.get("choices", []):
        delta = choice.get("delta", {})
        if "secret" in delta.get("content", ""):
            delta["content"] = delta["content"].replace("secret", "***")
    return event
    """,
    'event["choices"][0]["delta"]["content"] += "!"\nreturn event',
    'event["n"] = (event["n"] + 4) * 2 - 1 % 3\nevent["f"] /= 2\nreturn event',
    'event["half"] = event["n"] // 2\nevent["less"] = -1 < event["n"]\nreturn event',
    'event["x"] = event["choices"][-1]["delta"]["content"][2:8].upper()\nreturn event',
    'event["x"] = event["none"] is None and event["yes"] is not False\nreturn event',
    'event["x"] = "absent" not in event\nreturn event',
    'event["x"] = "a" if isinstance(event["n"], int) else "b"\nreturn event',
    'event["x"] = len(event["choices"]) == len(event["id"])\nreturn event',
    'key = event["id"]\nevent["x"] = f"<{key} {len(key)}>"\nreturn event',
    'event["x"] = str(event["f"]) + str(None) + str(True)\nreturn event',
    """
    found = 0
    for one in event["choices"]:
        if not one["finish_reason"]:
            found += 1
            continue
        break
    else:
        event["all"] = found
    return event
    """,
    """
    for one in event["choices"]:
        event["choices"][0] = 5
        event["x"] = one["index"]
    return event
    """,
    """
    content: str = event["choices"][0]["delta"]["content"]
    if content.startswith("A ") and content.find("word") > 0:
        event["x"] = content.strip("Ad").lower().count("e")
    elif content.endswith("x"):
        return None
    return event
    """,
    'if bool(event.get("usage")):\n    import os\nreturn event',
]


@pytest.mark.parametrize("body", ALIKE)
def test_what_runs_inline_does_what_the_method_does(body: str) -> None:
    hook = Hook(body)
    assert hook.run(EVENT) == hook.really(EVENT)


@pytest.mark.parametrize(
    "body",
    [
        "print(event)\nreturn event",
        "return None",
        "return {}",
        "return {**event}",
        "return event['absent']",
        "event['x'] = 1 / 0\nreturn event",
        "event['choices'].insert(None, {'x': 1})\nreturn event",
        "self.valves = 1\nreturn event",
        "event['x'] = event\nreturn event",
        "event['x'] = event['choices']\nreturn event",
        "event['x'] = [1]\nreturn event",
        "event.clear()\nreturn event",
        "event['id'].nothing\nreturn event",
        "if event:\n    y = 1\nelse:\n    z = 1\nevent['x'] = z\nreturn event",
        "event['x'] = '\\ud800'\nreturn event",
        "del event['id']\nreturn event",
        "event['x'] = [one for one in 'ab']\nreturn event",
        "event['x'] = 1 if 0 < event['n'] < 5 else 2\nreturn event",
        "event['x'] = self\nreturn event",
        "event['x'] = WORD\nreturn event",
        "event['x'] = self.absent\nreturn event",
        "event['x'] = self.__class__.__name__\nreturn event",
        "event['x'] = event['choices'] == []\nreturn event",
        "event['x'] = 1 in event['choices']\nreturn event",
        "event['x'] = abs(-1)\nreturn event",
        "event['x'] = len('a', *[])\nreturn event",
        "try:\n    event['x'] = 1\nexcept KeyError:\n    pass\nreturn event",
        "with open('/dev/null'):\n    pass\nreturn event",
        "while False:\n    pass\nreturn event",
        "event['x'] = (lambda: 1)()\nreturn event",
        "event['x'], y = 1, 2\nreturn event",
        "self = event\nself['x'] = 1\nreturn event",
    ],
)
def test_what_has_no_translation_or_fails_is_given_up(body: str) -> None:
    hook = Hook(body, head="WORD = 'w'")
    assert hook.inline is None or hook.run(EVENT) is None


HOSTILE = {
    "text that doubles": "text = 'ab'\nfor c in event['l']:\n    text = text + text\nevent['x'] = text",
    "text that is repeated": "event['x'] = 'ab' * event['big']",
    "a wide format": "event['x'] = f'{event[\"n\"]:>999999999}'",
    "percent": "event['x'] = '%999999999d' % event['n']",
    "a power": "event['x'] = 9 ** 9 ** 9",
    "numbers that double": "n = event['big']\nfor c in event['l']:\n    n = n * n\nevent['x'] = n",
    "a shift": "event['x'] = 1 << event['big']",
    "a replacement that grows": "event['x'] = event['t'].replace('a', event['t'])",
    "replacing nothing": "event['x'] = event['t'].replace('', event['t'])",
    "a search that takes long": "event['x'] = event['t'] in event['t'] + 'b' + event['t'][1:]",
    "loops in loops": "for a in event['l']:\n  for b in event['l']:\n    for c in event['l']:\n      pass",
    "members without end": "for a in event['l']:\n  for b in event['l']:\n    event[str(a * b)] = event['t']",
    "one text many times": "for a in event['l']:\n    event[str(a)] = event['t']",
    "endless": "while True:\n    pass",
    "recursion": "return self.stream(event)",
    "a range": "for n in range(10 ** 12):\n    pass",
    "many pieces": "event['x'] = f\"{'{event[chr(116)]}' * 40}\"",
    "a long line of pieces": "t = event['t']\nevent['x'] = f'" + "{t}" * 60 + "'",
}
LARGE: Event = {"l": list(range(200)), "big": 2**62, "t": "a" * 8000, "n": 1}


# In a process of its own: in Python 3.11 a call under `sys.setprofile` never begins while an asynchronous
# exception is pending for another thread, as it is after a test that stopped a blocked one.
COUNT = """
import json, sys
from tests.gatewayd.plugins.inline.test_methods import HOSTILE, count_calls
json.dump({name: count_calls(name) for name in HOSTILE}, sys.stdout)
"""


def count_calls(name: str) -> int:
    """Count the calls that a hostile method makes until its run is given up."""
    hook = Hook(HOSTILE[name] + "\nreturn event")
    assert hook.inline is not None
    calls = 0

    def count(frame: FrameType, what: str, _: object) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    sys.setprofile(count)
    try:
        made = hook.inline.run(orjson.dumps(LARGE))
    finally:
        sys.setprofile(None)
    assert made is None, name
    return calls


@pytest.mark.process
def test_what_would_take_long_is_given_up_early() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    calls = json.loads(ran.stdout)
    assert calls.keys() == HOSTILE.keys()
    assert {name: count for name, count in calls.items() if count >= 10 * MAX_STEPS} == {}


STATE = """
def __init__(self):
    self.seen, self.text, self.first = 0, "", True
    self.big = 2 ** 63 - 1
    self.items = [1]
"""


def test_what_is_set_on_the_instance_is_kept_once_the_run_is_over() -> None:
    hook = Hook(
        """
        self.seen += 1
        if self.first:
            self.first = False
            event["first"] = self.seen
        if event.get("stop"):
            self.seen = 100
            print("stop")
        return event
        """,
        more=STATE,
    )
    assert hook.run({}) == {"first": 1}
    assert hook.run({"stop": True}) is None
    assert hook.instance.seen == 1
    assert hook.run({}) == {}
    assert (hook.instance.seen, hook.instance.first) == (2, False)


@pytest.mark.parametrize(
    "body",
    ["self.big += 1", "self.text += event['t'] + event['t']", "self.items += [1]", "self.items[0] = 2"],
)
def test_state_that_grows_or_is_no_plain_value_is_left_to_the_thread(body: str) -> None:
    hook = Hook(body + "\nreturn event", more=STATE)
    before = dict(vars(hook.instance))
    results = [hook.run(LARGE) for _ in range(20)]
    assert results[-1] is None
    assert len(hook.instance.text) <= 65_536
    if results[0] is None:
        assert vars(hook.instance) == before


VALVES = """
class Valves(BaseModel):
    word: str = "secret"
    priority: int = 0

def __init__(self):
    self.valves = self.Valves()
"""
VALVED = 'event["x"] = self.valves.word\nreturn event'
IMPORT = "from pydantic import BaseModel\n"


def test_valves_are_read_as_they_are() -> None:
    hook = Hook(VALVED, IMPORT, VALVES)
    assert hook.run({}) == {"x": "secret"}
    hook.instance.valves = hook.instance.Valves(word="other")
    assert hook.run({}) == {"x": "other"}


BOOM = 'raise AssertionError("this must not run")'

TRAPS = {
    "a property": (f"@property\ndef trap(self):\n    {BOOM}", "event['x'] = self.trap"),
    "a property that is set": (
        f"@property\ndef trap(self):\n    {BOOM}\n@trap.setter\ndef trap(self, value):\n    {BOOM}",
        "self.trap = 1",
    ),
    "__getattr__": (f"def __getattr__(self, name):\n    {BOOM}", "event['x'] = self.trap"),
    "__getattribute__": (
        "trap = 1\ndef __getattribute__(self, name):\n"
        f"    if name == 'trap':\n        {BOOM}\n    return object.__getattribute__(self, name)",
        "event['x'] = self.trap",
    ),
    "__setattr__": (f"def __setattr__(self, name, value):\n    {BOOM}", "self.trap = 1"),
    "a descriptor": (
        f"class Trap:\n    def __get__(self, *_):\n        {BOOM}\ntrap = Trap()",
        "event['x'] = self.trap",
    ),
    "__dict__": (f"@property\ndef __dict__(self):\n    {BOOM}", "event['x'] = self.trap"),
    "a property of the valves": (
        f"class Valves:\n    @property\n    def word(self):\n        {BOOM}\n"
        "def __init__(self):\n    self.valves = self.Valves()",
        "event['x'] = self.valves.word",
    ),
    "__getattr__ of the valves": (
        f"class Valves:\n    def __getattr__(self, name):\n        {BOOM}\n"
        "def __init__(self):\n    self.valves = self.Valves()",
        "event['x'] = self.valves.word",
    ),
    "valves as a property": (
        f"class Valves:\n    word = 'w'\n@property\ndef valves(self):\n    {BOOM}",
        "event['x'] = self.valves.word",
    ),
    "a text that compares itself": (
        "class Text(str):\n    __hash__ = str.__hash__\n    def __eq__(self, other):\n"
        f"        {BOOM}\n"
        "def __init__(self):\n    vars(self)[self.Text('trap')] = 1",
        "event['x'] = self.trap",
    ),
    "a dict that looks up itself": (
        "class Own(dict):\n    def get(self, *_):\n"
        f"        {BOOM}\n    __getitem__ = copy = get\n"
        "def __init__(self):\n    self.__dict__ = self.Own(trap=1)",
        "event['x'] = self.trap",
    ),
    "a text of its own kind": (
        "class Text(str):\n    def __add__(self, other):\n"
        f"        {BOOM}\n"
        "def __init__(self):\n    self.trap = self.Text('t')",
        "event['x'] = self.trap + 'x'",
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_no_code_of_the_plugin_runs_for_what_a_method_reads_and_sets(name: str) -> None:
    more, body = TRAPS[name]
    hook = Hook(body + "\nreturn event", more=more)
    assert hook.inline is not None
    assert hook.run({}) is None


def test_functions_of_the_language_that_the_module_has_replaced_are_not_meant() -> None:
    hook = Hook("event['x'] = len(event)\nreturn event", head=f"def len(value):\n    {BOOM}")
    assert hook.run({}) is None


def test_functions_of_the_language_that_anybody_has_replaced_do_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = Hook("event['x'] = len(event['id']) + len(str(event['n']))\nreturn event")
    calls: list[Any] = []
    real = len
    with monkeypatch.context() as patched:
        patched.setattr("builtins.len", lambda value: calls.append(threading.get_ident()) or real(value))
        result = hook.inline and hook.inline.run(b'{"id":"ab","n":100}')
    assert result == b'{"id":"ab","n":100,"x":5}'
    assert calls


def test_what_is_left_as_it_was_is_the_same_object() -> None:
    hook = Hook("if 'x' in event:\n    event['x'] = 1\nreturn event")
    assert hook.inline is not None
    value = b' {"a" : 1} '
    assert hook.inline.run(value) is value


def test_only_small_objects_run_inline() -> None:
    hook = Hook("return event")
    assert hook.inline is not None
    for value in (b"[1]", b"1", b"no json", orjson.dumps({"t": "a" * MAX_VALUE_BYTES})):
        assert hook.inline.run(value) is None


def test_values_that_come_together_share_their_steps() -> None:
    hook = Hook("for one in event['l']:\n    pass\nreturn event")
    assert hook.inline is not None
    values = [orjson.dumps({"l": list(range(100))})] * 50
    made = hook.inline.run_all(values)
    assert 1 < len(made) < 50
    assert hook.inline._operations.paid * len(made) <= MAX_TOTAL_STEPS


def test_asynchronous_methods_run_inline_unless_they_wait_or_keep_something() -> None:
    assert Hook("event['x'] = 1\nreturn event", prefix="async ").run({}) == {"x": 1}
    assert Hook("await event\nreturn event", prefix="async ").run({}) is None
    assert Hook("self.x = 1\nreturn event", prefix="async ").inline is None


def test_a_method_is_idle_when_it_only_returns_what_it_gets() -> None:
    assert [
        hook.inline is not None and hook.inline.is_idle
        for hook in (
            Hook("'''Nothing.'''\npass\nreturn event"),
            Hook("event = event\nreturn event"),
            Hook("return event or None"),
        )
    ] == [True, False, False]


def test_another_function_than_the_one_that_was_translated_is_told_apart() -> None:
    hook = Hook("return event")
    assert hook.inline is not None
    assert hook.inline.is_of(hook.instance.stream)
    assert not hook.inline.is_of(hook.instance.stream.__func__)
    hook.instance.stream = lambda event: event
    assert not hook.inline.is_of(hook.instance.stream)


CHANGING = """
event["messages"].insert(0, {"role": "system", "content": "Be " + "brief."})
event["messages"].append({"role": "user", "content": "x"})
event["messages"].insert(-1, {"role": "user"})
event["messages"][1]["content"] += "!"
event["new"] = 1
event["n"] = event["n"] + 1
self.seen = 1
"""


def conversation() -> Event:
    return {"messages": [{"role": "user", "content": "hi"}], "n": 1}


def test_an_object_is_changed_in_place() -> None:
    hook = Hook(CHANGING + "return event")
    assert hook.inline is not None
    value = conversation()
    assert hook.inline.change(value)
    assert value == hook.really(conversation())
    assert [one["role"] for one in value["messages"]] == ["system", "user", "user", "user"]


@pytest.mark.parametrize("end", ["raise ValueError('no')", "return None", "return dict(event)", "x = 1 / 0"])
def test_what_is_given_up_leaves_the_object_as_it_was(end: str) -> None:
    hook = Hook(CHANGING + end)
    assert hook.inline is not None
    value = conversation()
    assert not hook.inline.change(value)
    assert value == conversation()
    assert list(value) == list(conversation())
    assert vars(hook.instance) == {}


def test_only_new_objects_are_added_and_to_no_list_that_is_looped_over() -> None:
    for body in (
        "x = {'a': 1}\nevent['messages'].append(x)",
        "event['messages'].append({'a': event})",
        "event['messages'].append({'a': {}})",
        "event['messages'].append({event['n']: 1})",
        "event['messages'].append({**event})",
        "event['messages'].append({}, 1)",
        "event['messages'].insert('0', {})",
        "event['n'].append({})",
        "event['messages'].append(event['messages'][0])",
        "for one in event['messages']:\n    event['messages'].append({})",
    ):
        hook = Hook(body + "\nreturn event")
        assert hook.inline is not None
        value = conversation()
        assert not hook.inline.change(value)
        assert value == conversation()


def test_nothing_of_a_value_is_kept() -> None:
    for end in ("return event", "return None"):
        hook = Hook(CHANGING + end)
        assert hook.inline is not None
        content = "unique" * 2
        value = {"messages": [{"content": content}], "n": 1}
        before = sys.getrefcount(content)
        hook.inline.change(value)
        hook.inline.run(orjson.dumps(value))
        value.clear()
        assert sys.getrefcount(content) < before


@pytest.mark.parametrize("look", ["event.get(t)", "event[t]", "t in event"])
def test_a_long_name_is_paid_for_as_it_is_hashed(look: str) -> None:
    hook = Hook(f"t = event['t']\nevent['x'] = bool({look})\nreturn event")
    assert hook.inline is not None
    for length, is_changed in ((10_000, True), (1_000_000, False)):
        text = "a" * length
        assert hook.inline.change({"t": text, text: 1}) is is_changed
    stored = Hook("event[event['t']] = 1\nreturn event").inline
    assert stored is not None
    assert not stored.change({"t": "b" * 1_000_000})


def test_values_that_come_together_pay_for_being_read() -> None:
    hook = Hook("if event.get('x'):\n    event['y'] = 1\nreturn event")
    assert hook.inline is not None
    large = orjson.dumps({"l": [{}] * (MAX_VALUE_BYTES // 4)})
    assert 0 < len(hook.inline.run_all([large] * 100)) < 50


def test_what_a_model_of_pydantic_has_a_say_in_is_not_set_inline() -> None:
    hook = Hook("self.n = 2\nevent['x'] = self.n\nreturn event", head=MODEL)
    hook.source = hook.source.replace("class Filter:", "class Filter(BaseModel):\n    n: int = 1")
    exec(compile(hook.source, "plugin.py", "exec"), vars(hook.module))
    hook.instance = hook.module.Filter()
    hook.inline = hook.make()
    assert hook.run({}) is None


def test_only_objects_are_changed() -> None:
    hook = Hook("return event")
    assert hook.inline is not None
    assert not hook.inline.change(None)
    assert not hook.inline.change([])
