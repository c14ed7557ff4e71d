"""Plays a story to a running gateway and checks every answer by the story and by the standard."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from tests.clients.scim.story import GROUP, USER, Pages, Step, Story
from tests.fakes.http.raw_http import Reply, send

BASE = "/api/v1/scim/v2"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
SCHEMAS = {"Users": USER, "Groups": GROUP}
NAMES = {"Users": "User", "Groups": "Group"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MISSING = object()
MOST_PAGES = 100


@dataclass
class Player:
    """One provider at work; `kept` is what it remembers of earlier answers."""

    base_url: str
    token: str
    story: Story
    kept: dict[str, str] = field(default_factory=dict)

    def play(self) -> None:
        """Go through all steps."""
        for step in self.story.steps:
            try:
                self._take(step)
            except AssertionError as error:
                raise AssertionError(f"{self.story.provider}: {step.what}: {error}") from error

    def _take(self, step: Step | Pages) -> None:
        if isinstance(step, Pages):
            self._page(step)
        else:
            self._ask(step)

    def _ask(self, step: Step) -> None:
        path = filled_in(step.path, self.kept)
        reply = self._send(step.method, path, filled_in(step.body, self.kept))
        assert reply.status == step.status, told(reply)
        if step.status == 204:
            assert reply.body == b"", told(reply)
            return
        answer = decoded(reply)
        if step.status >= 400:
            check_error(answer, step)
            return
        check_answer(self.base_url, path, answer)
        self._compare(step, answer)
        self.kept.update({name: str(at(answer, place)) for name, place in step.keeps.items()})
        if step.method != "GET" and not urlsplit(path).query:
            self._reread(step, path, reply, answer)

    def _compare(self, step: Step, answer: dict[str, Any]) -> None:
        for place, value in filled_in(dict(step.shows), self.kept).items():
            assert at(answer, place) == value, f"{place} is {at(answer, place)!r} in {answer}"
        for place in step.filled:
            assert at(answer, place) not in (MISSING, None, "", []), f"{place} is empty in {answer}"
        for place in step.lacks:
            assert at(answer, place) is MISSING, f"{place} is there in {answer}"
        if step.total is not None:
            assert answer["totalResults"] == step.total, answer
        if step.members is not None:
            shown = sorted(member["value"] for member in answer.get("members", []))
            assert shown == sorted(filled_in(list(step.members), self.kept)), answer

    def _reread(self, step: Step, path: str, reply: Reply, answer: dict[str, Any]) -> None:
        """Check that an answered write shows what everybody reads from then on."""
        location = answer["meta"]["location"]
        if step.method == "POST":
            assert reply.headers.get("location") == location, dict(reply.headers)
            path = location.removeprefix(self.base_url + BASE)
        again = self._send("GET", path, None)
        assert again.status == 200, told(again)
        assert decoded(again) == answer

    def _page(self, pages: Pages) -> None:
        seen: list[str] = []
        for _ in range(MOST_PAGES):
            path = filled_in(pages.path, {**self.kept, "start": str(len(seen) + 1)})
            reply = self._send("GET", path, None)
            assert reply.status == 200, told(reply)
            answer = decoded(reply)
            check_answer(self.base_url, path, answer)
            assert answer["Resources"] or not answer["totalResults"], answer
            seen += [resource["id"] for resource in answer["Resources"]]
            if len(seen) >= answer["totalResults"]:
                break
        else:
            raise AssertionError(f"the list has no end after {MOST_PAGES} pages")
        assert len(seen) == len(set(seen)) == answer["totalResults"]
        assert set(filled_in(list(pages.holds), self.kept)) <= set(seen)

    def _send(self, method: str, path: str, body: Any) -> Reply:
        headers = {"Authorization": f"Bearer {self.token}", **self.story.headers}
        data = None
        if body is not None:
            headers.setdefault("Content-Type", self.story.content_type)
            data = json.dumps(body).encode()
        return send(self.base_url, method, BASE + path, data, headers)


def filled_in(value: Any, kept: Mapping[str, str]) -> Any:
    """Put what was kept in the place of `{name}`, in every text of a value; KeyError for an unknown name."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: kept[found[1]], value)
    if isinstance(value, Mapping):
        return {key: filled_in(item, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_in(item, kept) for item in value]
    return value


def at(answer: Any, place: str) -> Any:
    """Return what stands at a dotted place, else MISSING; a whole place may be one name with dots in it."""
    if isinstance(answer, Mapping) and place in answer:
        return answer[place]
    head, _, rest = place.partition(".")
    inner = MISSING
    if isinstance(answer, Mapping):
        inner = answer.get(head, MISSING)
    elif isinstance(answer, Sequence) and head.isdigit() and int(head) < len(answer):
        inner = answer[int(head)]
    return at(inner, rest) if rest and inner is not MISSING else inner


def told(reply: Reply) -> str:
    """Return what a reply says, for a message."""
    return f"{reply.status} {reply.body.decode(errors='replace')[:2000]}"


def decoded(reply: Reply) -> dict[str, Any]:
    """Return the body, which must be a SCIM message."""
    assert reply.headers.get("content-type", "").startswith("application/scim+json"), dict(reply.headers)
    assert "x-request-id" in reply.headers
    answer = reply.json
    assert isinstance(answer, dict), answer
    return answer


def check_error(answer: dict[str, Any], step: Step) -> None:
    """Check an error message (RFC 7644 section 3.12)."""
    assert answer["schemas"] == [ERROR], answer
    assert answer["status"] == str(step.status), answer
    assert answer.get("scimType") == step.scim_type, answer
    assert isinstance(answer["detail"], str), answer
    assert answer["detail"], answer


def check_answer(base_url: str, path: str, answer: dict[str, Any]) -> None:
    """Check a list, a resource, or a page of discovery."""
    assert_no_null(answer)
    noun = urlsplit(path).path.split("/")[1]
    if answer["schemas"] != [LIST]:
        check_resource(base_url, noun, answer, is_whole="ttributes=" not in path)
        return
    assert all(type(answer[name]) is int for name in ("totalResults", "startIndex", "itemsPerPage")), answer
    assert answer["itemsPerPage"] == len(answer["Resources"]) <= answer["totalResults"], answer
    for resource in answer["Resources"]:
        check_resource(base_url, noun, resource, is_whole="ttributes=" not in path)


def check_resource(base_url: str, noun: str, resource: dict[str, Any], *, is_whole: bool) -> None:
    """Check what every user and group has; projected ones have at least an id and schemas."""
    if noun not in SCHEMAS:
        return
    assert resource["schemas"] == [SCHEMAS[noun]], resource
    assert isinstance(resource["id"], str), resource
    assert resource["id"], resource
    assert "password" not in resource, resource
    if not is_whole:
        return
    meta = resource["meta"]
    assert meta["resourceType"] == NAMES[noun], resource
    assert meta["location"] == f"{base_url}{BASE}/{noun}/{resource['id']}", resource
    assert MOMENT.fullmatch(meta["created"]), resource
    assert MOMENT.fullmatch(meta["lastModified"]), resource
    assert moment(meta["created"]) <= moment(meta["lastModified"]), resource
    if noun == "Users":
        assert type(resource["active"]) is bool, resource
        check_emails(resource)


def check_emails(user: dict[str, Any]) -> None:
    """Check that at most one of the addresses is the primary one (RFC 7643 section 2.4)."""
    assert sum(email.get("primary", False) for email in user.get("emails", [])) <= 1, user


def moment(text: str) -> datetime:
    """Read a time of the wire."""
    return datetime.fromisoformat(text)


def assert_no_null(value: Any) -> None:
    """Check that what has no value is left out, not null (RFC 7643 section 2.5)."""
    assert value is not None
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        assert_no_null(item)
