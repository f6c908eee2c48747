"""Reports of the dashboard: this site's own records are on a page only where somebody asked for them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from atoll.runtime.nats.site import Site
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
