"""Reports of the dashboard: this site's own records are on a page only where somebody asked for them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from atoll.errors import ParameterError
from atoll.runtime.nats.site import DataSet, Site
from atoll.web import reports


def test_own_records_are_read_only_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site.make(tmp_path / "site")
    read: list[str] = []

    def own(folder: Any) -> str:
        read.append(folder.name)
        return "rows"

    monkeypatch.setattr(reports, "_own", own)
    monkeypatch.setattr(reports, "load_result", lambda _: SimpleNamespace(study=SimpleNamespace(digest="")))
    monkeypatch.setattr(reports, "report_html", lambda _, beside: beside)
    assert reports._made.__wrapped__(site.folder, "run", False, 0)[0] is None
    assert read == []
    assert reports._made.__wrapped__(site.folder, "run", True, 0)[0] == "rows"
    assert read == ["run"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of which this site brought the table of ``north``, or of nothing; changed by the tests."""
    table = tmp_path / "table.csv"
    table.write_text("age,dose\n" + "".join(f"{row},{row}\n" for row in range(20)))
    state = SimpleNamespace(rehearse=False, me="north", data_set=None)
    chosen = DataSet(path=str(table))
    folder = SimpleNamespace(state=lambda: state, proposed=lambda: SimpleNamespace(study=None), site=None)
    monkeypatch.setattr(reports, "data_holders", lambda _: ("north", "south"))
    monkeypatch.setattr(reports, "chosen_data_set", lambda *_: chosen)
    return SimpleNamespace(folder=folder, state=state)


def test_a_report_shows_the_rows_that_the_site_brought(ran: Any) -> None:
    assert reports._own(ran.folder).n_rows == 20


def test_of_a_rehearsal_and_of_no_table_there_are_no_own_rows(ran: Any) -> None:
    """Rows that took no part would be shown as if the model were about them."""
    ran.state.rehearse = True
    with pytest.raises(ParameterError, match="this site brought no table to this run"):
        reports._own(ran.folder)
    ran.state.rehearse, ran.state.me = False, "lab"
    with pytest.raises(ParameterError, match="this site brought no table to this run"):
        reports._own(ran.folder)


def test_a_report_shows_rows_in_the_order_of_their_alignment(
    ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = DataSet(path=reports.chosen_data_set(None, None).path, alignment="rows.atoll")  # type: ignore[arg-type]
    monkeypatch.setattr(reports, "chosen_data_set", lambda *_: chosen)
    monkeypatch.setattr(
        reports, "aligned", lambda island, path: island.aligned(np.array([5, 2]), path, "age")
    )
    assert reports._own(ran.folder).n_rows == 2


def test_a_page_is_made_again_for_another_result_and_for_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is kept may not be shown for another run, nor with rows to whoever did not ask for them."""
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(reports, "_made", lambda *asked: made.append(asked) or "page")
    result = tmp_path / "result.atoll"
    result.write_bytes(b"one")
    folder = SimpleNamespace(name="run", result=result, site=SimpleNamespace(folder=tmp_path))
    for own in (False, True):
        reports.report_of(folder, own_rows=own)  # type: ignore[arg-type]
    os.utime(result, ns=(1, 1))
    reports.report_of(folder, own_rows=True)  # type: ignore[arg-type]
    assert [asked[2] for asked in made] == [False, True, True]
    assert len({asked[3] for asked in made}) == 2
