"""Valves as people declare and read them."""

import json
from typing import Any

import pytest

from tests.fakes.daemons.plugin_site import Site, wait_until


def keep(site: Site, function: str, values: dict[str, Any], **fields: Any) -> tuple[int, Any]:
    """Set the valves of a function, as another plugin does."""
    return site.act("settings_keeper", function=function, values=values, **fields)


def shown(site: Site) -> dict[str, Any]:
    return dict(eval(site.say("valve_gallery", "show")))


def test_valves_are_set_over_the_defaults(site: Site) -> None:
    before = shown(site)
    assert (before["MODE"], before["NOTE"], before["HOSTS"], before["debug"]) == (
        "fast",
        None,
        ["a", "b"],
        False,
    )
    values = {
        "MODE": "GOOD",
        "API_KEY": "secret",
        "TOP_K": 5,
        "HOSTS": ["c"],
        "NOTE": " note ",
        "LANGUAGE": "de",
        "debug": True,
        "REGION": None,
    }
    status, stored = keep(site, "valve_gallery", values)
    assert status == 200
    assert stored["API_KEY"].startswith("sealed:")
    after = shown(site)
    assert (after["MODE"], after["API_KEY"], after["TOP_K"]) == ("good", "secret", 5)
    assert (after["HOSTS"], after["NOTE"], after["LANGUAGE"]) == (["c"], "note", "DE")
    assert (after["debug"], after["REGION"]) == (True, "west")
    assert keep(site, "valve_gallery", dict.fromkeys(values))[0] == 200
    assert shown(site) == before


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"MODE": "slow"}, "MODE"),
        ({"TOP_K": 11}, "TOP_K"),
        ({"TOP_K": "many"}, "TOP_K"),
        ({"LOWEST": 9}, "LOWEST must not be over HIGHEST"),
    ],
)
def test_valves_that_do_not_fit_are_refused_by_name(site: Site, values: dict[str, Any], named: str) -> None:
    before = shown(site)
    status, reply = keep(site, "valve_gallery", values)
    assert status == 400
    assert named in reply["detail"]
    assert shown(site) == before


def test_hooks_are_told(site: Site) -> None:
    assert site.say("lifecycle", "x").startswith("startup;")
    keep(site, "lifecycle", {"NAME": "new"})
    wait_until(lambda: site.say("lifecycle", "x") == "startup valves new; new")


def test_users_have_their_own_valves(site: Site) -> None:
    everything = ("attribute", "getattr", "dict", "get", "validated", "again")
    assert {json.loads(site.say("personal_settings", "x"))[name] for name in everything} == {"kind"}
    assert keep(site, "personal_settings", {"tone": "stern"}, personal=True) == (200, {"tone": "stern"})
    mine = json.loads(site.say("personal_settings", "x"))
    assert {mine[name] for name in everything} == {"stern"}
    assert mine["length"] == 3
    everybody = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
    form = {"id": "personal_settings", "name": "Personal", "access_grants": everybody}
    site.good("POST", "/api/v1/models/create", form)
    status, reply = site.complete("personal_settings", "x", site.new_user("Bea"))
    assert status == 200
    assert json.loads(reply["choices"][0]["message"]["content"])["attribute"] == "kind"


def test_the_schema_tells_a_page_what_to_show(site: Site) -> None:
    schema = site.good("GET", "/api/v1/functions/id/valve_gallery/valves/spec")
    shown = schema["properties"]
    assert shown["MODE"]["enum"] == ["fast", "good"]
    assert shown["MODE"]["title"] == "Mode"
    assert shown["API_KEY"]["input"] == {"type": "password"}
    assert (shown["TOP_K"]["minimum"], shown["TOP_K"]["maximum"]) == (1, 10)
    options = [{"value": "west", "label": "West of Ada"}, {"value": "east", "label": "East"}]
    assert shown["REGION"]["input"] == {"type": "select", "options": options}
    assert shown["COLOUR"]["enum"] == ["red", "blue"]
    assert {choice["type"] for choice in shown["NOTE"]["anyOf"]} == {"string", "null"}
    assert shown["HOSTS"]["items"] == {"type": "string"}
    assert shown["debug"]["type"] == "boolean"
    mine = site.good("GET", "/api/v1/functions/id/personal_settings/valves/user/spec")
    assert mine["properties"]["tone"]["default"] == "kind"


def test_tools_have_valves_of_their_own_and_of_their_users(site: Site) -> None:
    path = "/api/v1/tools/id/tool_settings/valves"
    site.good("POST", f"{path}/update", {"base": "https://other.example"})
    site.good("POST", f"{path}/user/update", {"retries": 4})
    assert site.run_tools("tool_settings", ("search", {"query": "q"})) == ["https://other.example 4 q"]
    assert site.call("POST", f"{path}/user/update", {"retries": -1})[0] == 400
    site.good("POST", f"{path}/update", {"base": None})
    site.good("POST", f"{path}/user/update", {"retries": None})
    assert site.run_tools("tool_settings", ("search", {"query": "q"})) == ["https://example.org 1 q"]
