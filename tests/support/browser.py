"""A real browser for tests, headless: pages as people see them, what they write on the console, and pictures.

Pictures go to ``$ATOLL_SCREENSHOTS``, for whoever wants to look at them; else they are thrown away.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

WIDTHS = (1440, 400)
SLOW = 120_000
"""Milliseconds: the machine may be busy."""


def browser_path() -> str:
    """Chromium; where everything must run, a missing one is a failure."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("CI") or os.environ.get("ATOLL_REQUIRE_BROWSER"):
            pytest.fail("there is no Chromium on this machine")
        pytest.skip("there is no Chromium on this machine")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium as playwright drives it."""
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield made
        finally:
            made.close()


class Watched:
    """Tabs of one window, and everything that went wrong in any of them."""

    def __init__(self, browser: Any, folder: Path, **more: Any) -> None:
        chosen = os.environ.get("ATOLL_SCREENSHOTS")
        self.folder = Path(chosen) if chosen else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.wrong: list[str] = []
        self.context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900}, **more)
        self.context.set_default_timeout(SLOW)
        self.context.on("page", self._watch)

    def _watch(self, page: Any) -> None:
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "GPU stall" not in text:
            self.wrong.append(f"{kind}: {text}")

    def open(self, address: str) -> Any:
        page = self.context.new_page()
        page.goto(address)
        return page

    def shoot(self, page: Any, name: str) -> None:
        """Whole-page pictures in both widths; nothing may stand beyond the window's edge."""
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(300)
            assert page.evaluate(_BEYOND) == [], f"{name} at {width}"
            page.screenshot(path=str(self.folder / f"{name}-{width}.png"), full_page=True)
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})

    def accessible(self, page: Any) -> None:
        """No serious violation that axe-core finds."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(page).response["violations"]
        said = [
            f"{one['id']}: {node['target']} {node['html'][:120]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
        assert said == []


_BEYOND = """() => {
  // Texts that the window's edge cuts, unless what holds them can be scrolled.
  const wide = document.documentElement.clientWidth + 1;
  const scrolls = (e) => e && (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)
    || scrolls(e.parentElement));
  const texts = "p, h1, h2, h3, a, button, dd, dt, li, figcaption, label, td, th, svg";
  return [...document.querySelectorAll(texts)]
    .filter((e) => e.getClientRects().length && e.getBoundingClientRect().right > wide && !scrolls(e))
    .map((e) => e.tagName + ": " + e.textContent.slice(0, 60));
}"""


def marked(page: Any, name: str) -> None:
    """Wait until the page's script has marked it: ``ready`` or ``live``.

    By a locator: a function that is waited for is evaluated again and again, which the pages' policy forbids
    from the second time on, so that such a test would pass on a quick machine alone.
    """
    page.locator(f"html[data-{name}=yes]").wait_for(state="attached")


def all_live(page: Any) -> None:
    """Come near every figure that has an interactive form, until it shows it."""
    for figure in page.locator("figure:has(.live)").all():
        figure.evaluate("(one) => one.scrollIntoView()")
        page.locator(f"#{figure.get_attribute('id')}[data-live=yes]").wait_for(state="attached")


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait for what no locator can see."""
    for _ in range(SLOW // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    pytest.fail("it never came to hold")


def is_drawn(element: Any) -> bool:
    """Whether an element shows more than an even area: many places differ from the commonest colour."""
    picture = imread(io.BytesIO(element.screenshot()))[..., :3]
    flat = (picture * 255).astype(np.uint8).reshape(-1, 3)
    _, counts = np.unique(flat, axis=0, return_counts=True)
    return bool(len(counts) > 8 and counts.max() < 0.998 * len(flat))
