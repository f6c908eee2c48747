"""Studies on a real hub, decided and watched in a real browser."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.support.browser import Watched, all_live, browser, is_drawn, marked
from tests.support.dashboards import Address, dashboard
from tests.support.network_sites import OFFICE, decide, ended, office, sites, state_at, study_of

from atoll.cli.one_machine import OneMachine
from atoll.privacy.ledger import Ledger
from atoll.protocols import resolve
from atoll.runtime.nats import submit
from atoll.runtime.nats.runs import RunFolder
from atoll.study.model import Study

pytestmark = pytest.mark.timeout(900)
ISLANDS = ("north", "south")
COLUMNS = ("age", "dose", "weight", "stay")
SCHEMA = [{"name": name, "kind": "number", "low": -12.0, "high": 12.0} for name in COLUMNS]
PLAYED = {"provider": ("owner",), "server": ("curator",)}
NAME = "<b>bold</b><script>document.title='broken'</script>"


def write_tables(folder: Path, rows: int = 12_000) -> None:
    """Patients in five loose groups: what there is to see, and enough to be at it for a while."""
    draw = np.random.default_rng(11)
    centre = 4 * draw.normal(size=(5, 4))
    X = centre[draw.integers(5, size=rows)] + draw.normal(size=(rows, 4)) @ draw.normal(size=(4, 4))
    frame = pd.DataFrame(X, columns=list(COLUMNS)).round(6)
    for name, part in zip(ISLANDS, np.array_split(np.arange(rows), len(ISLANDS)), strict=True):
        frame.iloc[part].to_csv(folder / f"{name}.csv", index=False)


def studies(machine: OneMachine) -> dict[str, Study]:
    """One of each analysis; what each site may see is released to it."""
    outputs = ("components", "explained_variance", "n_samples", "ellipses")
    pca = study_of(machine, ISLANDS, name=NAME, release=dict.fromkeys(outputs, ("provider",)))
    pca = structs.replace(pca, version=None)  # each protocol fills in its own
    learned = {"model": ("provider", "consumer"), "fit": ("consumer",), "n_samples": ("provider", "consumer")}
    regression = structs.replace(
        pca, name="stay by age and dose", protocol="glm", analysis="regression", release=learned,
        parameters={"columns": COLUMNS[:3], "target": "stay"},
    )  # fmt: skip
    clusters = structs.replace(
        pca, name="kinds of patients", protocol="kmeans", analysis="clusters", release=learned,
        parameters={"columns": COLUMNS, "n_clusters": 12, "max_iter": 300, "tol": 0.0},
    )  # fmt: skip
    synthesis = structs.replace(
        pca, name="made-up patients", protocol="ppca-synthesis", analysis="synthesis",
        parties=tuple(structs.replace(p, roles=PLAYED[p.roles[0]]) for p in pca.parties),
        release={"model": ("owner", "curator")},
        parameters={"epsilon": 1.0, "delta": 1e-7, "bins": 6, "outside": "clip", "schema": SCHEMA},
    )  # fmt: skip
    made = {"pca": pca, "regression": regression, "clusters": clusters, "synthesis": synthesis}
    return {analysis: resolve(study) for analysis, study in made.items()}


@contextmanager
def at_the_north(folder: Path) -> Iterator[tuple[OneMachine, Address, Watched]]:
    """A hub with two sites, and the dashboard of one in a browser."""
    with sites(folder, identity="patients") as machine, office(machine), browser() as chromium:
        write_tables(folder)
        for name in ISLANDS:
            with Ledger.create(machine.sites[name].ledger) as book:
                book.set_budget("patients", 2.0, 1e-6)
                book.set_budget("staff <i>north</i>", 1.0, 0.0)
        with dashboard(machine.sites["north"]) as address:
            yield machine, address, Watched(chromium, folder / "pictures")


def test_studies_are_read_decided_watched_and_looked_at(tmp_path: Path) -> None:
    with at_the_north(tmp_path) as (machine, address, watched):
        page = watched.open(address.url)
        page.get_by_text("Nothing waits.").wait_for()
        marked(page, "live")
        seen: dict[str, list[str]] = {}
        for analysis, study in studies(machine).items():
            run = submit.submit(machine.sites[OFFICE], study, f"a <i>reason</i> for {analysis}").name
            _read_and_approve(machine, watched, page, run, study)
            seen[analysis] = _watched_until_it_ends(machine, page, run)
            _look_at_the_report(watched, page, run, analysis)
        # Some run is long enough to move before the reader's eyes.
        assert any(len(set(words)) > 1 for words in seen.values()), seen
        _decline(machine, watched, page, studies(machine)["pca"])
        _another_origin_decides_nothing(machine, watched, page, address, studies(machine)["pca"])
        _look_around(watched, page, address)
        _a_stopped_node_is_said(machine, watched, page, address)
        assert watched.wrong == []


def _read_and_approve(machine: OneMachine, watched: Watched, page: Any, run: str, study: Study) -> None:
    card = page.locator(f"#run-{run}")  # it arrives without a reload
    assert card.locator("h3").inner_text() == study.name
    assert card.locator("h3 *").count() == 0
    if study.name == NAME:
        watched.shoot(page, "waiting")
        watched.accessible(page)
    page.locator(f"#read-{run}").click()
    page.get_by_role("heading", name="Who learns what").wait_for()
    assert "a <i>reason</i>" in page.locator("main").inner_text()
    assert study.digest in page.locator("main").inner_text()
    if study.name == NAME:
        watched.shoot(page, "review")
        watched.accessible(page)
        assert page.title() == f"{NAME}: review – Atoll"
    decide(machine, "south", run)
    page.locator("#approve").click()
    page.locator("#live-active, #live-ended").first.wait_for()


def _watched_until_it_ends(machine: OneMachine, page: Any, run: str) -> list[str]:
    """What the page said of the run, until it was over."""
    seen = []
    over = page.locator(f"#live-ended #run-{run}")
    for _ in range(2400):
        seen += page.locator(f"#live-active #run-{run} label").all_inner_texts()
        if over.count():
            break
        page.wait_for_timeout(100)
    assert over.get_attribute("data-phase") == "finished", state_at(machine, "north", run).words
    return seen


def _look_at_the_report(watched: Watched, page: Any, run: str, analysis: str) -> None:
    for link in ("Report of", "Report with your own records")[0 if analysis == "pca" else 1 :]:
        with watched.context.expect_page() as opening:
            page.locator(f"#run-{run}").get_by_role("link", name=link).click()
        report = opening.value
        report.wait_for_load_state()
        figures = report.locator("figure")
        assert figures.count() >= (4 if analysis == "pca" else 3)
        all_live(report)
        for place in range(figures.count()):
            shown = figures.nth(place).locator(".live:visible, .still:visible").first
            shown.scroll_into_view_if_needed()
            assert is_drawn(shown), f"{analysis}: figure {place}"
        assert (
            f"({'owner' if analysis == 'synthesis' else 'provider'})"
            in report.locator("#summary").inner_text()
        )
        assert {"pca": "ellipses", "synthesis": "dependence"}.get(analysis, "") in report.content()
        watched.shoot(report, f"report-{analysis}{'-own' if 'own' in link else ''}")
        watched.accessible(report)
        report.close()


def _decline(machine: OneMachine, watched: Watched, page: Any, study: Study) -> None:
    study = resolve(structs.replace(study, name="unwanted"))
    run = submit.submit(machine.sites[OFFICE], study, "").name
    page.locator(f"#read-{run}").click()
    page.get_by_label("Why not").fill("not <b>this</b> year")
    page.locator("#decline").click()
    page.locator(f"#live-ended #run-{run}").get_by_text("declined").first.wait_for()
    assert ended(machine, OFFICE, run).answers["north"].words == "not <b>this</b> year"


def _another_origin_decides_nothing(
    machine: OneMachine, watched: Watched, page: Any, address: Address, study: Study
) -> None:
    """A page of another port of this machine, which even knows the token, posts an approval."""
    study = resolve(structs.replace(study, name="foreign"))
    run = submit.submit(machine.sites[OFFICE], study, "").name
    page.locator(f"#read-{run}").wait_for()
    target = f"{address.url}runs/{run}/decision"
    form = f"does=approve&digest={study.digest}"
    script = f"""
      const told = {{method: "POST", mode: "no-cors", body: new URLSearchParams({json.dumps(form)})}};
      fetch({json.dumps(target)}, told).finally(() => {{
        const form = document.forms[0]; form.action = {json.dumps(target)}; form.submit(); }});"""
    fields = f'<input name="does" value="approve"><input name="digest" value="{study.digest}">'
    html = f"<!doctype html><form method=post>{fields}</form><script>{script}</script>"
    with _served(html) as elsewhere:
        foreign = Watched(watched.context.browser, watched.folder)
        foreign.open(elsewhere).get_by_text("requests of other origins are refused").wait_for()
        foreign.context.close()
    assert RunFolder(machine.sites["north"], run).state().phase == "proposed"


@contextmanager
def _served(html: str) -> Iterator[str]:
    """A page of another origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _look_around(watched: Watched, page: Any, address: Address) -> None:
    """The other pages, by keyboard where that is the question."""
    page.goto(address.url)
    page.locator("#live-ended article").first.wait_for()
    watched.shoot(page, "dashboard")
    watched.accessible(page)
    assert page.locator("#live-ledger h3").all_inner_texts() == ["patients", "staff <i>north</i>"]
    page.get_by_role("link", name="Receipt").first.click()
    page.get_by_text("Its signature and its chain are good").wait_for()
    watched.shoot(page, "receipt")
    watched.accessible(page)
    page.goto(f"{address.url}doctor")
    page.get_by_text("What works on this machine").wait_for()
    watched.shoot(page, "doctor")
    watched.accessible(page)
    page.goto(address.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"


def _a_stopped_node_is_said(machine: OneMachine, watched: Watched, page: Any, address: Address) -> None:
    """Decisions are the node's; the last run still waits."""
    page.goto(address.url)
    page.get_by_role("link", name="Read and decide").first.click()
    machine.end("north")
    page.locator("#approve").click()
    page.get_by_text("no node of this site is running").wait_for()
    page.goto(address.url)
    page.get_by_text("No node of this site is running.").wait_for()
    watched.wrong = [one for one in watched.wrong if "409" not in one]
