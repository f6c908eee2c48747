"""Reports of finished runs: made when somebody asks, one at a time, and kept for a while."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.data.island import as_island
from atoll.errors import ParameterError
from atoll.privacy.ledger import Ledger
from atoll.report.html import Beside, report_html
from atoll.report.html.beside import budget_table, receipt_facts
from atoll.runtime.aligned import aligned
from atoll.runtime.nats.owned import chosen_data_set
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.nats.site import Site
from atoll.runtime.result import load_result
from atoll.runtime.studies import data_holders

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.report.analyses.base import Table

_ONE_AT_A_TIME = threading.Lock()
"""matplotlib draws in one thread."""


def report_of(folder: RunFolder, *, own_rows: bool) -> str:
    """The page; with ``own_rows``, this site's own records are on it too."""
    if not folder.result.exists():
        raise ParameterError(f"the run {folder.name} has left no result here")
    with _ONE_AT_A_TIME:
        return _made(folder.site.folder, folder.name, own_rows, folder.result.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _made(site: Path, name: str, own_rows: bool, _: int) -> str:
    folder = RunFolder(Site(site), name)
    result = load_result(folder.result)
    receipt = receipt_facts(folder.receipt, result.study.digest) if folder.receipt.exists() else ()
    own = _own(folder) if own_rows else None
    return report_html(result, Beside(own, receipt, _budget(folder.site, result.study.digest)))


def _own(folder: RunFolder) -> Island:
    """The table that this site brought to the run."""
    state = folder.state()
    if state.rehearse or state.me not in data_holders(folder.proposed().study):
        raise ParameterError("this site brought no table to this run")
    chosen = chosen_data_set(folder.site, state.data_set)
    island = as_island(state.me, chosen.path)
    return island if chosen.alignment is None else aligned(island, chosen.alignment)


def _budget(site: Site, digest: str) -> Table | None:
    if not site.ledger.is_file():
        return None
    with Ledger(site.ledger) as ledger:
        return budget_table(ledger, digest)
