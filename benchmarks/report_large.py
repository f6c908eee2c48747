"""A large report: how long it takes to make, how large it is, how long until a browser has drawn it.

    python -m benchmarks.report_large [--rows 60000] [--columns 760] [--components 5]

The result is made without a run: what a consumer holds of a study that releases everything. The browser is
Chromium without a window and without a graphics processor. Counted from the moment the page is asked for:
"still pictures" is when the whole page stands there with a still picture of every figure, "drawn" when the
figures that are seen, or a quarter of a screen away, are interactive, and "all figures" when every figure is,
after scrolling from one to the next; the slowest figure is given by itself.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from atoll.report.html import report_html
from atoll.runtime.result import Result
from atoll.runtime.transcript import Transcript
from atoll.study.model import Party, Study


def large_result(rows: int, columns: int, components: int, islands: int = 3) -> Result:
    """Records in groups, so that there is something to see."""
    draw = np.random.default_rng(7)
    centres = 8 * draw.normal(size=(4, components))
    spread = np.linspace(3.0, 1.0, components)
    scores = centres[draw.integers(4, size=rows)] + draw.normal(size=(rows, components)) * spread
    variance = np.sort(scores.var(axis=0))[::-1]
    parts = np.array_split(scores, islands)
    names = tuple(f"island-{i}" for i in range(islands))
    parties = (*(Party(name, ("provider",)) for name in names), Party("office", ("server", "consumer")))
    study = Study(
        name="a large study",
        protocol="pppca",
        parties=parties,
        parameters={"n_components": components, "standardize": True},
        release=dict.fromkeys(("components", "explained_variance", "n_samples", "scores"), ("consumer",)),
    )
    outputs = {
        "components": np.linalg.qr(draw.normal(size=(columns, components)))[0].T,
        "mean": draw.normal(size=columns),
        "scale": np.ones(columns),
        "columns": tuple(f"measurement {i}" for i in range(columns)),
        "explained_variance": variance,
        "total_variance": float(1.4 * variance.sum()),
        "n_samples": rows,
        "islands": names,
        "scores": dict(zip(names, parts, strict=True)),
    }
    return Result(study, outputs, Transcript())


def drawn_after(path: Path) -> dict[str, float]:
    """Seconds, in a browser that has just been opened."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(path.absolute().as_uri(), wait_until="commit")
        page.locator("#chart-contributions .still svg").wait_for()
        still = time.perf_counter() - began
        page.locator("html[data-ready=yes]").wait_for(state="attached")
        page.evaluate(_PAINTED)
        drawn = time.perf_counter() - began
        each = [_shown(page, figure) for figure in page.locator("figure:has(.live)").all()]
        every = time.perf_counter() - began
        browser.close()
    return {"still pictures": still, "drawn": drawn, "all figures": every, "slowest figure": max(each)}


_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def _shown(page: Any, figure: Any) -> float:
    """Seconds from scrolling to a figure until it is interactive and painted."""
    began = time.perf_counter()
    figure.evaluate("(one) => one.scrollIntoView()")
    page.locator(f"#{figure.get_attribute('id')}[data-live=yes]").wait_for(state="attached")
    page.evaluate(_PAINTED)
    return time.perf_counter() - began


def measured(rows: int, columns: int, components: int) -> dict[str, Any]:
    result = large_result(rows, columns, components)
    report_html(large_result(100, 5, 2))  # imports are not the report's own
    began = time.perf_counter()
    page = report_html(result).encode()
    made = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        return {"megabytes": len(page) / 1e6, "made": made, **drawn_after(path)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=60_000)
    asked.add_argument("--columns", type=int, default=760)
    asked.add_argument("--components", type=int, default=5)
    asked.add_argument("--runs", type=int, default=3)
    given = asked.parse_args()
    for _ in range(given.runs):
        found = measured(given.rows, given.columns, given.components)
        size = found.pop("megabytes")
        print(f"{size:.2f} MB; " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items()))


if __name__ == "__main__":
    main()
