"""Time and memory of a run of the paper variant before keys exist, and which course it takes."""

from __future__ import annotations

from atoll.protocols.base import Circumstances, Expectation, Forecast
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.beforehand import assumed_rows, own_columns
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters, cheaper
from atoll.protocols.pca.sfpca.paper.planner import Counted, planned
from atoll.protocols.pca.sfpca.parameters import VERTICAL
from atoll.secret_matrices.costs import rates as tables
from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.rates import Rates
from atoll.secret_matrices.costs.timing import Effort, Links, Timeline
from atoll.study.model import Study

_PROGRAM = 250_000_000
"""Bytes of the program itself with its libraries."""
_KEYS = 4.0
"""Bytes that a role uses for each byte of the keys' sums, measured: both halves of each key, and while these
are made the sums as they came."""
_AT_A_TIME = 3.0
"""Rows of a sketch that a role holds for each of them: of P, its product, and what is on its way."""
_COPIES = 2.5
"""Copies of a table that a provider has at a time."""
_COUNTED = (
    "messages and rounds are exact, bytes but for names; processor seconds are operations times what each "
    "takes halfway between two refreshes, without the simulation of intervals"
)


def forecast(study: Study, given: Circumstances) -> tuple[Expectation, Forecast]:
    """What the run will take, by the rates of this machine."""
    rates, d = tables.current(), given.columns
    rows = given.rows or (assumed_rows(d),) * len(study.who(PROVIDER))
    links = Links(given.latency, given.bandwidth)
    lines = [Timeline(len(rows), links, rates.cores, together=together) for together in (True, False)]
    run = planned(study, rows, d, Costing(rates, Effort(len(rows), lines)))
    effort = run.machine.wires.costing.effort
    role, own = _role(study, run, d), [_table(study, n, d) for n in rows]
    together, apart = (line.seconds for line in lines)
    return run.expected, Forecast(
        together,
        apart,
        float(effort.providers.max()),
        effort.coordinator_seconds,
        _PROGRAM + (1 + len(rows)) * role + sum(own),
        _PROGRAM + role + max(own),
        _PROGRAM + role,
        tuple(_course(study, run, rows, d)),
        tuple(_assumed(given, rows, rates)),
    )


def _role(study: Study, run: Counted, d: int) -> int:
    """Bytes of a role's keys and ciphertexts."""
    machine = run.machine
    wide = -(-max(d, 1) // machine.slots)
    rho = study.read_parameters(PaperParameters).sketched
    row = wide * machine.set.ciphertext_bytes()
    return int(_KEYS * machine.key_bytes + _AT_A_TIME * rho * row)


def _table(study: Study, n: int, d: int) -> int:
    """Bytes of an island's table; encoded for products as it is used."""
    return int(8 * _COPIES * n * own_columns(study, d))


def _course(study: Study, run: Counted, rows: tuple[int, ...], d: int) -> list[str]:
    p = study.read_parameters(PaperParameters).paper
    said = [f"{_name(run)}, {_reason(study, run, rows, d)}"]
    if p.verify:
        said.append(
            "providers compute all that the coordinator computes (verify = true): in one process this takes "
            f"{len(rows) + 1} times its share"
        )
    return said


def _name(run: Counted) -> str:
    if run.course.method == "precomp":
        return "Precomp"
    return "Seq with DQR^T" if run.course.qr == "dqr" else "Seq with QR^T"


def _reason(study: Study, run: Counted, rows: tuple[int, ...], d: int) -> str:
    p = study.read_parameters(PaperParameters).paper
    if study.partition == VERTICAL:
        return "because islands hold columns (the paper's D.2): nobody has a covariance of its own to prepare"
    if run.course.method == p.method or run.course.qr == p.qr == "dqr":
        return "because the study asks for it"
    largest = max(rows)
    precomp, seq = f"{d:,} columns", f"twice the smaller of {largest:,} rows and {d:,} columns"
    if cheaper(largest, d, p) == "precomp":
        return f"because {precomp} are no more than {seq}: so many products with clear numbers it takes"
    return f"because {seq} is less than {precomp}: so many products with clear numbers it takes"


def _assumed(given: Circumstances, rows: tuple[int, ...], rates: Rates) -> list[str]:
    known = f"{sum(rows):,} rows in all" if given.rows else f"{rows[0]:,} rows on each island (--rows)"
    speed = f"{8 * given.bandwidth / 1e6:,.0f} Mbit/s" if given.bandwidth else "any bandwidth"
    return [
        known,
        f"links of {1000 * given.latency:g} ms and {speed} between every two parties",
        f"machines of {rates.cores} cores; speeds: {rates.origin}",
        _COUNTED,
    ]
