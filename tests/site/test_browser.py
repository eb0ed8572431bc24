"""The site in a real browser: content, keyboard, phone, dark and light, no error and no request to outside."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from rigctl.site import build
from rigctl.store.index import Index
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
NOW = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_run(folder / "runs", faulty=False)
    later = build_run(folder / "runs", unreached=True)
    later.write_record(later.read_record().model_copy(update={"ended_at": "2026-12-01T02:00:00Z"}))
    with Index.open(folder / "runs") as index:
        index.update()
        build(index, folder / "site", NOW)
    return folder / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail("there is no Chromium here: run `tools/setup.sh tests`")
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Seen:
    """A page, and what it complained of."""

    page: Page
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        return self.page


@pytest.fixture(params=["light", "dark"])
def seen(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Seen]:
    context = browser.new_context(viewport=DESK, color_scheme=request.param)
    found = Seen(context.new_page())
    found.page.on("console", lambda one: found.errors.append(one.text) if one.type in ("error", "warning") else None)
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on(
        "request",
        lambda one: None if one.url.startswith(("file:", "data:", "blob:")) else found.outside.append(one.url),
    )
    yield found
    assert (found.errors, found.outside) == ([], [])
    context.close()


def test_the_fleet(site: Path, seen: Seen) -> None:
    page = seen.open(site / "index.html")
    assert page.get_by_role("heading", level=1).inner_text() == "2 rigs of 3 need somebody"
    rows = page.locator(".fleet li")
    assert [row.get_by_role("link").inner_text() for row in rows.all()] == ["rig2", "rig3", "rig1"]
    assert page.get_by_role("img").first.get_attribute("aria-label") == "rig2, 2 nights: 1 fail, 1 pass"
    assert page.locator("rect.fail title").first.text_content()


def test_by_keyboard_from_the_fleet_to_a_run(site: Path, seen: Seen) -> None:
    page = seen.open(site / "index.html")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "rig2"
    page.keyboard.press("Enter")
    page.wait_for_selector("#incidents")
    assert page.get_by_role("heading", level=1).inner_text() == "rig2: fail"
    incident = page.locator("section[aria-labelledby=incidents] a").first
    incident.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("td .chip")
    assert page.locator("main h2 a").all_inner_texts() == ["rig1", "rig2", "rig3"]
    page.get_by_role("link", name="thermals.settled_gpu_temp").first.click()
    assert page.get_by_role("heading", level=1).inner_text() == "thermals.settled_gpu_temp"


def test_the_curves_of_a_rig_are_drawn(site: Path, seen: Seen) -> None:
    page = seen.open(site / "rigs" / "rig2.html")
    page.wait_for_selector("html.drawn")
    assert page.locator(".chart .main-svg").count() >= 2
    assert page.get_by_text("The curves need the scripts").is_hidden()
    assert page.get_by_text("This rig is simulated").is_visible()
    assert page.get_by_text("Since the last pass").is_visible()


@pytest.mark.parametrize("name", ["index.html", "rigs/rig2.html", "checks/index.html", "checks/kernel.xid.html"])
def test_nothing_scrolls_sideways_on_a_phone(site: Path, seen: Seen, name: str) -> None:
    seen.page.set_viewport_size(PHONE)
    page = seen.open(site / name)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_every_run_has_a_page_that_fits_a_phone(site: Path, seen: Seen) -> None:
    seen.page.set_viewport_size(PHONE)
    pages = sorted((site / "runs").iterdir())
    assert len(pages) == 2
    for path in pages:
        assert seen.open(path).evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_every_link_leads_somewhere(site: Path, seen: Seen) -> None:
    for path in [site / "index.html", *sorted((site / "rigs").iterdir()), *sorted((site / "runs").iterdir())]:
        page = seen.open(path)
        for link in page.locator("a").all():
            target = str(link.get_attribute("href")).partition("#")[0]
            assert not target or (path.parent / target).resolve().exists(), f"{path.name}: {target}"
