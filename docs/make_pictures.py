"""Makes the pictures in ``docs/pictures`` from the demo's hospitals: a report, and a dashboard.

    python docs/make_pictures.py [FOLDER]

Needs Chromium, playwright (of the ``test`` extra) and a NATS server; run it when the pages look different.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from atoll.cli.demo_network import SUBMITTER, pinned
from atoll.cli.hospitals import hospitals, write_study
from atoll.cli.one_machine import OneMachine
from atoll.data.island import Island
from atoll.report.html import Beside, report_html
from atoll.runtime.execute import run_study
from atoll.runtime.nats import submit
from atoll.runtime.nats.node import Options
from atoll.runtime.studies import open_study, read_own

LOOKED_FROM = "coast-screening"
COLOURS = 96
"""Of a picture: enough for pages, and a third of the bytes."""


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        folder = Path(place)
        study = with_ellipses(folder)
        of_report(browser, folder, study, target)
        of_dashboard(browser, folder, study, target)
    for path in sorted(target.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def with_ellipses(folder: Path) -> Path:
    """The demo's study, which also lets hospitals see each other as ellipses."""
    path = write_study(folder)
    path.write_text(path.read_text().replace("[release]", '[release]\nellipses = ["provider"]\n#', 1))
    return path


def of_report(browser: Any, folder: Path, study: Path, target: Path) -> None:
    """What one hospital sees: its own patients, and the others as ellipses."""
    file = open_study(study)
    result = run_study(file.study, read_own(file)).by_party[LOOKED_FROM]
    own = Island.from_file(folder / f"{LOOKED_FROM}.csv")
    own.name = LOOKED_FROM
    page_file = folder / "report.html"
    page_file.write_text(report_html(result, Beside(own=own)), encoding="utf-8")
    page = opened(browser, 900, 900)
    page.goto(page_file.as_uri())
    for chart, name in (("#chart-scree", "report-scree"), ("#chart-ellipses", "report-islands")):
        page.locator(chart).evaluate("(one) => one.scrollIntoView()")  # it becomes interactive
        page.locator(f"{chart}[data-live=yes]").wait_for(state="attached")
        save(page.locator(chart).screenshot(), target / f"{name}.png")


def of_dashboard(browser: Any, folder: Path, study: Path, target: Path) -> None:
    """The same hospital's dashboard: a study waits, and is read."""
    with OneMachine(folder / "machine") as machine:
        for name in (*hospitals(), SUBMITTER):
            machine.add_site(name)
        machine.start_hub()
        machine.start_node(LOOKED_FROM, "--data", str(folder / f"{LOOKED_FROM}.csv"))
        site = machine.sites[SUBMITTER]
        with submit.node_of(site, site.identity(), Options(lookup=submit.lookup, deadline=120)):
            asked = pinned(open_study(study).study, machine)
            submit.submit(site, asked, "one map of all tumours", deadline=120)
            with dashboard(machine.sites[LOOKED_FROM].folder) as address:
                page = opened(browser, 900, 640)
                page.goto(address)
                read = page.get_by_role("link", name="Read and decide")
                read.wait_for()
                save(page.screenshot(), target / "dashboard.png")
                read.click()
                page.get_by_role("heading", name="Who learns what").wait_for()
                page.set_viewport_size({"width": 900, "height": 1100})
                save(page.screenshot(), target / "dashboard-review.png")


@contextmanager
def dashboard(site: Path) -> Iterator[str]:
    """``atoll dashboard``, and the address that it prints."""
    command = [sys.executable, "-m", "atoll", "dashboard", "--site", str(site)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("open this page: ").strip()
        finally:
            process.terminate()


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


def opened(browser: Any, width: int, height: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(120_000)
    return page


def save(png: bytes, path: Path) -> None:
    """With few colours, which is how it stays small."""
    with Image.open(io.BytesIO(png)) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(path, optimize=True)


if __name__ == "__main__":
    main()
