"""Collections, their files, and the search in them in a real browser."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.fakes.daemons.chat_site import Person
from tests.page.browser import PHONE, find_violations
from tests.page.conftest import NewTab
from tests.page.site import Site, wait_until

KNOWLEDGE = "/api/v1/knowledge"
HERON = "The heron stands in the reeds and waits for fish. 🐟 "
OWL = "The owl sleeps in the barn all day."
PROCESSED_MS = 60_000
"""What waits for the processing of files, which a busy machine may delay."""


def collection(site: Site, name: str = "Birds", who: Person | None = None, **more: Any) -> str:
    return str(site.ok("POST", f"{KNOWLEDGE}/create", {"name": name, **more}, who)["id"])


def store(site: Site, collection_id: str, name: str, text: str) -> str:
    """Put a text into a collection and return the id of its file."""
    body = {"name": name, "content": text}
    file_id = str(site.ok("POST", "/api/v1/retrieval/process/text", body)["file_id"])
    site.ok("POST", f"{KNOWLEDGE}/{collection_id}/file/add", {"file_id": file_id})
    return file_id


def opened(page: Page, site: Site, collection_id: str) -> Page:
    page.goto(f"/documents/{collection_id}")
    expect(page.get_by_role("tab", name="Files")).to_be_visible()
    return page


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=re.compile(re.escape(name)))


def pick(page: Page, name: str, command: str) -> None:
    page.get_by_role("button", name=f"Menu of {name}").click()
    page.get_by_role("menuitem", name=command, exact=True).click()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with files, one of them in a folder below and one that cannot be read."""
    folder = tmp_path / "Guide"
    (folder / "owls").mkdir(parents=True)
    (folder / "heron.txt").write_text(HERON)
    (folder / "owls" / "owl.txt").write_text(OWL)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / ".DS_Store").write_text("junk")
    return folder


def test_a_collection_is_made_changed_and_deleted(site: Site, page: Page) -> None:
    page.goto("/documents")
    page.get_by_role("button", name="New collection").click()
    page.get_by_role("textbox", name="Name").fill("Water birds")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Water birds")
    expect(page.get_by_role("heading", name="No files yet.")).to_be_visible()
    page.get_by_role("button", name="Menu of the collection").click()
    page.get_by_role("menuitem", name="Edit name and description").click()
    page.get_by_role("textbox", name="Description").fill("<b>Herons</b>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("<b>Herons</b>")
    page.get_by_role("link", name="All collections").click()
    page.get_by_role("searchbox", name="Search collections").fill("water")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(1)
    page.get_by_role("link", name="Water birds").click()
    page.get_by_role("button", name="Menu of the collection").click()
    page.get_by_role("menuitem", name="Delete collection").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The collection “Water birds” with 0 files goes.")
    dialog.get_by_role("button", name="Delete collection").click()
    page.wait_for_url("**/documents")


def test_a_folder_is_uploaded_with_its_paths_and_failures_are_explained(
    site: Site, page: Page, tree: Path
) -> None:
    collection_id = collection(site)
    opened(page, site, collection_id)
    page.locator("input[webkitdirectory]").set_input_files(tree)
    uploads = page.get_by_role("region", name=re.compile("Upload"))
    expect(uploads.get_by_role("status")).to_contain_text("2 of 3 ready", timeout=PROCESSED_MS)
    failed = uploads.get_by_role("list", name="Failed uploads")
    expect(failed).to_contain_text("broken.pdf")
    expect(failed.locator(".upload-reason")).not_to_be_empty()
    failed.get_by_role("button", name="Try broken.pdf again").click()
    expect(failed).to_contain_text("broken.pdf")
    # The list of uploads above it may change its height meanwhile, so that a click would miss.
    page.get_by_role("link", name="Guide").press("Enter")
    expect(row(page, "heron.txt")).to_contain_text("Ready", timeout=PROCESSED_MS)
    expect(row(page, "broken.pdf")).to_contain_text("Failed")
    expect(row(page, "broken.pdf")).to_contain_text(re.compile("cannot|PDF"))
    page.get_by_role("table").get_by_role("link", name="owls").click()
    expect(row(page, "owl.txt")).to_be_visible()
    expect(page.get_by_role("navigation", name="Path").get_by_role("link")).to_have_text(
        ["Birds", "Guide", "owls"]
    )
    page.go_back()
    page.get_by_role("checkbox", name="Select broken.pdf").check()
    chosen = page.get_by_role("region", name="Selected files")
    expect(chosen.get_by_role("status")).to_have_text("1 file selected")
    with page.expect_response(re.compile(r"/process$")) as answer:
        chosen.get_by_role("button", name="Try failed ones again").click()
    assert answer.value.status == 200
    expect(chosen).to_have_count(0)
    # The same folder again, before the list of the top has come: only what changed is sent, and to the top.
    lists: list[Route] = []
    page.route("**/files?*in_root=true*", lambda late: lists.append(late))
    page.get_by_role("navigation", name="Path").get_by_role("link", name="Birds").press("Enter")
    page.wait_for_url(f"**/documents/{collection_id}")
    uploads.get_by_role("button", name="Hide").click()
    (tree / "heron.txt").write_text(HERON + "Twice.")
    page.locator("input[webkitdirectory]").set_input_files(tree)
    expect(uploads.get_by_role("status")).to_contain_text("were there already, unchanged")
    for late in lists:
        late.continue_()
    page.unroute("**/files?*in_root=true*")
    # The list of uploads above it may change its height meanwhile, so that a click would miss.
    page.get_by_role("link", name="Guide").press("Enter")
    expect(row(page, "heron.txt")).to_have_count(1)


def test_a_folder_is_dropped(site: Site, page: Page, tree: Path) -> None:
    collection_id = collection(site)
    opened(page, site, collection_id)
    browser = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(tree)], "dragOperationsMask": 1}
    box = page.locator(".drop-zone").bounding_box()
    assert box is not None
    place = {"x": box["x"] + 100, "y": box["y"] + 150, "data": data}
    browser.send("Input.dispatchDragEvent", {"type": "dragEnter", **place})
    browser.send("Input.dispatchDragEvent", {"type": "dragOver", **place})
    expect(page.get_by_text("Drop the files to add them")).to_be_visible()
    browser.send("Input.dispatchDragEvent", {"type": "drop", **place})
    page.get_by_role("table").get_by_role("link", name="Guide").click()
    expect(row(page, "heron.txt")).to_contain_text("Ready", timeout=PROCESSED_MS)
    page.get_by_role("table").get_by_role("link", name="owls").click()
    expect(row(page, "owl.txt")).to_contain_text("Ready", timeout=PROCESSED_MS)
    expect(page.get_by_text("Drop the files to add them")).to_have_count(0)


def test_files_are_renamed_moved_shown_and_removed(site: Site, page: Page, axe: str) -> None:
    collection_id = collection(site)
    store(site, collection_id, "heron.txt", HERON + "<script>alert(1)</script>")
    opened(page, site, collection_id)
    page.get_by_role("button", name="heron.txt", exact=True).click()
    dialog = page.get_by_role("dialog", name="heron.txt")
    expect(dialog.get_by_role("region")).to_contain_text("<script>alert(1)</script>")
    dialog.get_by_role("button", name="Close").click()
    pick(page, "heron.txt", "Rename")
    page.get_by_role("textbox", name="Rename file").fill("herons.txt")
    page.keyboard.press("Enter")
    expect(row(page, "herons.txt")).to_be_visible()
    page.get_by_role("button", name="New directory").click()
    page.get_by_role("textbox", name="New directory").fill("Lakes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Lakes")).to_be_visible()
    pick(page, "herons.txt", "Move")
    dialog = page.get_by_role("dialog", name="Move “herons.txt”")
    dialog.get_by_role("button", name="Lakes").click()
    expect(dialog).to_contain_text("Birds / Lakes")
    dialog.get_by_role("button", name="Move here").click()
    expect(row(page, "herons.txt")).to_have_count(0)
    pick(page, "Lakes", "Rename")
    page.get_by_role("textbox", name="Rename directory").fill("Ponds")
    page.keyboard.press("Enter")
    store(site, collection_id, "owl.txt", "Owls hunt at night.")
    store(site, collection_id, "crane.txt", "Cranes dance.")
    page.reload()
    table = page.get_by_role("table")
    expect(table.get_by_role("checkbox")).to_have_count(3)
    table.get_by_role("checkbox", name="Select all").check()
    chosen = page.get_by_role("region", name="Selected files")
    assert find_violations(page, axe) == []
    chosen.get_by_role("button", name="Remove files").click()
    dialog = page.get_by_role("dialog", name="Remove files")
    expect(dialog).to_contain_text("Taken out of the collection: 2 files.")
    dialog.get_by_role("button", name="Remove files").click()
    expect(table.get_by_role("checkbox")).to_have_count(1)
    expect(chosen).to_have_count(0)
    page.get_by_role("link", name="Ponds").click()
    pick(page, "herons.txt", "Remove file")
    dialog = page.get_by_role("dialog", name="Remove file")
    expect(dialog).to_contain_text("“herons.txt” leaves the collection")
    dialog.get_by_role("button", name="Remove file").click()
    expect(page.get_by_role("heading", name="No files yet.")).to_be_visible()
    page.go_back()
    pick(page, "Ponds", "Remove directory")
    page.get_by_role("dialog").get_by_role("button", name="Remove directory").click()
    expect(page.get_by_role("link", name="Ponds")).to_have_count(0)


def test_the_search_shows_why_a_passage_was_found(site: Site, page: Page) -> None:
    collection_id = collection(site)
    heron = store(site, collection_id, "heron.txt", f"🐦 {OWL} " * 20 + HERON)
    store(site, collection_id, "owl.txt", OWL)
    opened(page, site, collection_id)
    page.get_by_role("tab", name="Search").click()
    page.get_by_role("searchbox", name="Ask something").fill("heron in the reeds")
    page.keyboard.press("Enter")
    passages = page.get_by_role("list", name="Passages").get_by_role("listitem")
    expect(passages.first).to_contain_text("heron.txt")
    expect(passages.first).to_contain_text("(place 1)")
    score = passages.first.get_by_role("meter", name="Score")
    assert 0 < float(score.get_attribute("value") or 0) <= 1
    passages.first.get_by_role("button", name="heron.txt").click()
    dialog = page.get_by_role("dialog", name="heron.txt")
    expect(dialog.locator("mark")).to_contain_text("The heron stands in the reeds")
    link = dialog.get_by_role("link", name="Open file")
    expect(link).to_have_attribute("href", f"/api/v1/files/{heron}/content")
    expect(link).to_have_attribute("target", "_blank")


def test_a_group_is_given_access_and_its_member_sees_the_collection(
    site: Site, page: Page, tabs: NewTab
) -> None:
    reader = site.add(f"reader{len(site.ok('GET', '/api/v1/users/all')['users'])}@example.com")
    group = site.ok("POST", "/api/v1/groups/create", {"name": "Ornithologists", "description": ""})
    site.ok("POST", f"/api/v1/groups/id/{group['id']}/users/add", {"user_ids": [reader.id]})
    name = f"Shared {group['id']}"
    collection_id = collection(site, name)
    store(site, collection_id, "heron.txt", HERON)
    theirs = tabs(reader.email)
    theirs.goto(f"/documents/{collection_id}")
    expect(theirs.get_by_role("alert").filter(has_text="There is nothing here.")).to_be_visible()
    opened(page, site, collection_id)
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("ornith")
    dialog.get_by_role("button", name="Ornithologists").click()
    expect(dialog.get_by_role("list", name="Shared with").get_by_role("listitem")).to_have_count(1)
    dialog.get_by_role("button", name="Save sharing").click()
    expect(dialog).to_have_count(0)
    theirs.goto("/documents")
    theirs.get_by_role("link", name=name).click()
    expect(row(theirs, "heron.txt")).to_be_visible()
    expect(theirs.get_by_role("button", name="Upload files")).to_have_count(0)
    expect(theirs.get_by_role("button", name="Share", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Share", exact=True).click()
    dialog.get_by_role("combobox", name="Access of Ornithologists").select_option("write")
    dialog.get_by_role("button", name="Save sharing").click()
    expect(dialog).to_have_count(0)
    theirs.reload()
    expect(theirs.get_by_role("button", name="Upload files")).to_be_visible()
    theirs.get_by_role("button", name="Share", exact=True).click()
    expect(theirs.get_by_role("dialog")).to_contain_text("You may not share with everybody.")


def test_many_files_come_in_pages(site: Site, page: Page) -> None:
    collection_id = collection(site)
    for number in range(31):
        store(site, collection_id, f"file {number}.txt", f"Bird number {number}")
    opened(page, site, collection_id)
    expect(page.get_by_role("row")).to_have_count(31)
    expect(page.get_by_role("navigation", name="Pages")).to_have_text(re.compile("1.30 of 31"))
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("searchbox", name="Search files by name").fill("file 7")
    expect(row(page, "file 7.txt")).to_be_visible()


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("ar", "dark")])
def test_axe(site: Site, tabs: NewTab, axe: str, language: str, theme: str) -> None:
    collection_id = collection(site)
    store(site, collection_id, "heron.txt", HERON)
    site.ok("POST", f"{KNOWLEDGE}/{collection_id}/dirs/create", {"name": "Lakes"})
    page = tabs(color_scheme=theme)
    page.context.add_cookies([{"name": "language", "value": language, "url": site.url}])
    page.goto("/documents")
    expect(page.get_by_role("main").get_by_role("listitem").first).to_be_visible()
    assert find_violations(page, axe) == []
    page.goto(f"/documents/{collection_id}")
    expect(page.get_by_role("row")).to_have_count(3)
    assert find_violations(page, axe) == []
    page.get_by_role("tab").nth(1).click()
    page.get_by_role("search").get_by_role("searchbox").fill("heron")
    page.keyboard.press("Enter")
    expect(page.get_by_role("meter")).to_have_count(3)
    assert find_violations(page, axe) == []
    page.locator(".passage-card .link").click()
    expect(page.locator("dialog mark")).to_be_visible()
    assert find_violations(page, axe) == []


def test_on_a_phone_files_are_cards(site: Site, tabs: NewTab) -> None:
    collection_id = collection(site)
    store(site, collection_id, "a name that is long enough to fill more than one line of a phone.txt", HERON)
    page = tabs(**PHONE)
    opened(page, site, collection_id)
    expect(page.get_by_role("row").last).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_uploads_go_on_elsewhere(site: Site, page: Page) -> None:
    collection_id = collection(site)
    opened(page, site, collection_id)
    files = [
        {"name": f"{number}.txt", "mimeType": "text/plain", "buffer": b"bird %d" % number}
        for number in range(8)
    ]
    page.locator("input[type=file]").first.set_input_files(files)  # type: ignore[arg-type]
    page.get_by_role("link", name="Favourites").click()

    def is_there() -> bool:
        return bool(site.ok("GET", f"{KNOWLEDGE}/{collection_id}")["file_count"] == 8)

    wait_until(is_there, "all files are in the collection")
