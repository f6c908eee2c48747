"""The joint "Table 1": counts, means, deviations, quantiles, levels, correlations and two-way tables.

Two secure sums. The first has counts of values, missing values, levels, pairs of levels and, where the study
says a column's public range, a histogram of it; the second has products about a common centre, pair by pair
of columns over the rows that have both values (as pandas correlates).

Adversary: passive; the server colludes with no provider. Learns: the server all these sums, exactly; whoever
the study releases the description to gets it with small cells left out (:mod:`suppression`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from atoll import fixedpoint, secure_sums
from atoll.codec import Message
from atoll.data.island import Island, Matrix
from atoll.data.levels import codes
from atoll.data.tables.base import Column
from atoll.errors import SchemaError, StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols import checked, fields
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import Disclosure, Expectation, Learned, Output, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.fields import AgreedFields, FieldParameters, Fields
from atoll.protocols.learning.design import Read
from atoll.protocols.learning.rows import check_stays, encoded
from atoll.protocols.learning.suppression import suppressed_list, suppressed_table
from atoll.protocols.own import Own
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"

MAX_BINS = 100_000
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class DescribeParameters(FieldParameters, frozen=True):
    """``ranges``: public lower and upper ends of columns whose quantiles are wanted, to a ``bins``-th of the
    range; ``tables``: pairs of columns with categories; ``min_count``: smaller cells are left out."""

    ranges: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    bins: int = 1000
    tables: tuple[tuple[str, str], ...] = ()
    min_count: int = 5


class Centres(Message, frozen=True):
    """Server -> provider: the joint mean of every column of numbers, from which products are taken."""

    values: np.ndarray[Any, Any]


class Description(Message, frozen=True):
    """Server -> provider, consumer: the description, small cells left out."""

    values: dict[str, Any]


OUTPUTS = {
    "description": Output(
        ("description",),
        (PROVIDER, SERVER, CONSUMER),
        "counts, means, deviations, quantiles, levels, correlations and two-way tables, small cells left out",
    )
}


class Shape(NamedTuple):
    """What is counted, and where in the first sum it stands."""

    numbers: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]
    bins: int
    tables: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, agreed: AgreedFields, p: DescribeParameters) -> Shape:
        numbers = tuple(name for name in agreed.names if name not in p.categorical)
        strange = [name for name in p.ranges if name not in numbers]
        if strange:
            raise SchemaError(
                f"there is a range for {strange[0]!r}, which is no column of numbers here",
                hint=f"the columns of numbers are {', '.join(map(repr, numbers[:5]))}",
            )
        levels = {name: agreed.levels[name] for name in agreed.names if name in p.categorical}
        return cls(numbers, levels, p.ranges, p.bins, p.tables)

    def sizes(self) -> dict[str, int]:
        """Every part of the first sum by name, with its length."""
        parts = {"rows": 1, "present": len(self.numbers), "total": len(self.numbers)}
        parts |= {f"levels {name}": len(levels) + 1 for name, levels in self.levels.items()}
        parts |= {f"histogram {name}": self.bins + 2 for name in self.ranges}
        for one, other in self.tables:
            parts[f"table {one} {other}"] = len(self.levels[one]) * len(self.levels[other])
        return parts

    @property
    def first(self) -> int:
        return sum(self.sizes().values())

    @property
    def second(self) -> int:
        return 4 * len(self.numbers) ** 2

    def apart(self, total: Matrix) -> dict[str, Matrix]:
        """The first sum by its parts."""
        ends = np.cumsum(list(self.sizes().values()))
        return dict(zip(self.sizes(), np.split(total, ends[:-1]), strict=True))


# ---- steps ----


def count(island: Island, shape: Shape) -> Matrix:
    """What an island adds first."""
    work = partial(_sums, shape=shape, owner=island.name)
    return np.asarray(reduce(np.add, island.mapped(shape.numbers, tuple(shape.levels), work)))


def _sums(X: Matrix, others: list[Column], *, shape: Shape, owner: str) -> Matrix:
    """The same of some rows."""
    parts: dict[str, Matrix] = {"rows": np.array([len(X)], dtype=np.float64)}
    present, total = np.zeros(len(shape.numbers)), np.zeros(len(shape.numbers))
    histograms = {name: np.zeros(shape.bins + 2) for name in shape.ranges}
    levels = {name: np.zeros(len(known) + 1) for name, known in shape.levels.items()}
    crossed = {
        pair: np.zeros(len(shape.levels[pair[0]]) * len(shape.levels[pair[1]])) for pair in shape.tables
    }
    there = np.isfinite(X)
    present += there.sum(axis=0)
    total += np.where(there, X, 0.0).sum(axis=0)
    for name, into in histograms.items():
        column = X[:, shape.numbers.index(name)]
        into += _histogram(column[np.isfinite(column)], shape.ranges[name], shape.bins)
    named = zip(shape.levels.items(), others, strict=True)
    coded = {name: codes(values, known, owner, name) for (name, known), values in named}
    for name, places in coded.items():
        levels[name] += np.bincount(places + 1, minlength=len(levels[name]))
    for (one, other), cells in crossed.items():
        cells += _crossed(coded[one], coded[other], shape, one, other)
    parts |= {"present": present, "total": total}
    parts |= {f"levels {name}": counts for name, counts in levels.items()}
    parts |= {f"histogram {name}": into for name, into in histograms.items()}
    parts |= {f"table {one} {other}": cells for (one, other), cells in crossed.items()}
    return np.concatenate([parts[name] for name in shape.sizes()])


def _histogram(values: Matrix, ends: tuple[float, float], bins: int) -> Matrix:
    """Counts below the range, in every bin, and above the range."""
    low, high = ends
    at = np.floor((values - low) / (high - low) * bins)
    inside = np.clip(at, -1, bins)
    inside[values == high] = bins - 1  # the upper end belongs to the last bin
    return np.bincount((inside + 1).astype(np.int64), minlength=bins + 2).astype(float)


def _crossed(
    one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], shape: Shape, first: str, second: str
) -> Matrix:
    both = (one >= 0) & (other >= 0)
    width = len(shape.levels[second])
    cells = one[both] * width + other[both]
    return np.bincount(cells, minlength=len(shape.levels[first]) * width).astype(float)


def products(island: Island, numbers: tuple[str, ...], centre: Matrix) -> Matrix:
    """Pair by pair over rows that have both values: their number, sums, squares and products."""
    if not numbers:
        return np.empty(0)
    return np.asarray(reduce(np.add, island.chosen(numbers).mapped(partial(_products, centre=centre))))


def _products(X: Matrix, centre: Matrix) -> Matrix:
    there = np.isfinite(X).astype(np.float64)
    Z = np.where(there > 0, X - centre, 0.0)
    return np.concatenate([one.ravel() for one in (there.T @ there, Z.T @ there, (Z**2).T @ there, Z.T @ Z)])


def described(
    shape: Shape, parts: Mapping[str, Matrix], second: Matrix, centre: Matrix, p: Any
) -> dict[str, Any]:
    """The description, from both sums."""
    d, rows = len(shape.numbers), round(float(parts["rows"][0]))
    N, S, Q, P = second.reshape(4, d, d)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.diag(S) / np.diag(N)
        variance = (np.diag(Q) - np.diag(N) * own**2) / (np.diag(N) - 1)
        # Column j's sums over the rows that have i as well stand in the transpose.
        covariance = P - S * S.T / N
        spread = Q - S**2 / N
        correlation = covariance / np.sqrt(spread * spread.T)
    # A mean of very few is nearly a value of one of them.
    few = np.diag(N) < p.min_count
    own, variance = np.where(few, np.nan, own), np.where(few, np.nan, variance)
    correlation = np.where(p.min_count > N, np.nan, correlation)
    found: dict[str, Any] = {
        "rows": rows,
        "numbers": list(shape.numbers),
        "count": np.round(parts["present"]),
        "missing": rows - np.round(parts["present"]),
        "mean": centre + own,
        "std": np.sqrt(np.maximum(variance, 0.0)),
        "correlation": np.clip(correlation, -1.0, 1.0),
        "quantiles": {
            name: _quantiles(parts[f"histogram {name}"], ends, shape.bins, p.min_count)
            for name, ends in shape.ranges.items()
        },
    }
    return found | _counted(shape, parts, p.min_count)


def _counted(shape: Shape, parts: Mapping[str, Matrix], least: int) -> dict[str, Any]:
    """Levels and two-way tables, small cells left out; what a list hides no table gives back."""
    found: dict[str, Any] = {"levels": {}, "tables": {}}
    for name, levels in shape.levels.items():
        missing, *counts = np.round(parts[f"levels {name}"]).astype(int).tolist()
        kept = suppressed_list(counts, least)
        found["levels"][name] = {"levels": list(levels), "counts": kept, "missing": missing}
    for one, other in shape.tables:
        cells = np.round(parts[f"table {one} {other}"]).astype(int)
        cells = cells.reshape(len(shape.levels[one]), len(shape.levels[other]))
        found["tables"][f"{one} x {other}"] = {
            "rows": list(shape.levels[one]),
            "columns": list(shape.levels[other]),
            "counts": suppressed_table(cells, least, *(_hidden(found["levels"][c]) for c in (one, other))),
        }
    return found


def _hidden(told: Mapping[str, Any]) -> list[bool]:
    return [count is None for count in told["counts"]]


def _quantiles(counts: Matrix, ends: tuple[float, float], bins: int, least: int) -> list[float | None]:
    """From a histogram: the middle of a bin; None outside the public range, or where few lie beyond."""
    below = np.cumsum(counts)
    width = (ends[1] - ends[0]) / bins
    found: list[float | None] = []
    for q in QUANTILES:
        at = int(np.searchsorted(below, q * below[-1], side="left"))
        inside = 1 <= at <= bins and min(q, 1.0 - q) * below[-1] >= least - 1
        found.append(ends[0] + (at - 0.5) * width if inside else None)
    return found


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, server, islands = study.read_parameters(DescribeParameters), study.the(SERVER), study.who(PROVIDER)
    island = own.table
    with Booking(study, own, record, None) as booked:
        mine = fields.own_fields(island, p, False)
        await net.send(server, mine)
        agreed = await net.receive(AgreedFields, server)
        fields.check_agreed(agreed, mine, p, island.name, server)
        await compare(net, "the columns", (agreed.names, agreed.named, agreed.levels), islands)
        shape = Shape.of(agreed, p)
        sums = _session(net, study, record, shape)
        await sums.open()
        await booked.settle_exact(net, Read(island, shape.numbers, dict(shape.levels)))
        counts = await net.compute(count, island, shape)
        await sums.contribute("counts", encoded(counts, len(islands), "the counts"))
        centres = await net.receive(Centres, server)
        checked.check_floats(centres.values, (len(shape.numbers),), "means", server)
        await compare(net, "the means", centres.values, islands)
        found = await net.compute(products, island, shape.numbers, centres.values)
        await sums.contribute("products", encoded(found, len(islands), "the products"))
        await sums.close()
    return await _released(net, study)


async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, islands = study.read_parameters(DescribeParameters), study.who(PROVIDER)
    told = await net.gather(Fields, islands)
    agreed = fields.agree({address.party: message for address, message in told.items()}, p)
    await net.broadcast(islands, agreed)
    shape = Shape.of(agreed, p)
    sums = _session(net, study, record, shape)
    await sums.open()
    parts = shape.apart(fixedpoint.decode(await sums.total("counts", shape.first)))
    # The mean of very few values is nearly one of them, so nobody is told it.
    many = parts["present"] >= max(p.min_count, 1)
    centre = np.where(many, parts["total"] / np.maximum(parts["present"], 1.0), 0.0)
    await net.broadcast(islands, Centres(centre))
    second = fixedpoint.decode(await sums.total("products", shape.second))
    found = await net.compute(described, shape, parts, second, centre, p)
    for address in study.receivers("description"):
        if address != net.me:
            await net.send(address, Description(found))
    return learned(study, net.me, OUTPUTS, {"description": found})


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    return await _released(net, study)


async def _released(net: Network, study: Study) -> Learned:
    if not study.releases("description", net.me):
        return Learned()
    message = await net.receive(Description, study.the(SERVER))
    return learned(study, net.me, OUTPUTS, {"description": message.values})


def _session(net: Network, study: Study, record: Record, shape: Shape) -> secure_sums.SecureSum:
    longest = max(shape.first, shape.second, 1)
    islands, receivers = study.who(PROVIDER), study.who(SERVER)
    return secure_sums.session(study, net, record, contributors=islands, receivers=receivers, longest=longest)


def learns(study: Study) -> list[Disclosure]:
    method, p = secure_sums.chosen(study), study.read_parameters(DescribeParameters)
    levels = ", and the levels of columns with categories" if p.categorical else ""
    said = [
        Disclosure(PROVIDER, f"the columns of all islands{levels}", (AgreedFields,)),
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(
            PROVIDER, "the mean of each column over all islands, unless it has few values", (Centres,)
        ),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(SERVER, "each island's column names" + levels.replace(", and", ", with"), (Fields,)),
        Disclosure(
            SERVER,
            "over all islands together, exactly: numbers of rows, values, levels and pairs of levels, "
            "histograms, sums and products of all columns",
            method.to_receivers,
            ("description",),
        ),
    ]
    for role in (PROVIDER, CONSUMER):
        if any(address.role == role for address in study.receivers("description")):
            said.append(Disclosure(role, OUTPUTS["description"].words, (Description,)))
    if len(study.who(PROVIDER)) == 2:
        also = (
            "and the description, " if any(a.role == PROVIDER for a in study.receivers("description")) else ""
        )
        said.append(
            Disclosure(
                PROVIDER,
                f"with two providers: from the means {also}less its own rows, those of the other alone",
            )
        )
    return said


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes and rounds for d columns; levels and histograms as the study says, else two levels."""
    p, M = study.read_parameters(DescribeParameters), len(study.who(PROVIDER))
    levels = {name: p.levels.get(name, ("", "")) for name in p.categorical}
    numbers = tuple(map(str, range(d - len(levels))))
    shape = Shape(numbers, levels, p.ranges, p.bins, p.tables)
    cost = secure_sums.expected(study, M, [shape.first, shape.second])
    told = 2 * comparisons(M)
    released = sum(address.role != SERVER for address in study.receivers("description"))
    return Expectation(
        messages=3 * M + cost.messages + told + released,
        bytes_per_provider=20 * d + cost.bytes_per_contributor + told // M * COMPARISON_BYTES,
        bytes_total=cost.bytes_total + told * COMPARISON_BYTES + M * 48 * d + released * 8 * (d * d + 8 * d),
        memory_server=4 * fixedpoint.BYTES_PER_VALUE * max(shape.first, shape.second),
        rounds=5 + cost.rounds + bool(released),
    )


def check(study: Study) -> None:
    p = study.read_parameters(DescribeParameters)
    fields.check_fields(p, False)
    check_stays(study)
    if p.special:
        raise StudyError("a description has no target, weights or offset", path=("parameters",))
    for name, (low, high) in p.ranges.items():
        if not (np.isfinite(low) and np.isfinite(high) and low < high) or name in p.categorical:
            raise StudyError(
                f"the range of {name!r} must be two finite numbers", path=("parameters", "ranges")
            )
    for pair in p.tables:
        if not set(pair) <= set(p.categorical) or pair[0] == pair[1]:
            raise StudyError(
                "tables name two different columns with categories", path=("parameters", "tables")
            )
    if not 1 <= p.bins <= MAX_BINS:
        raise StudyError(f"bins must be 1 to {MAX_BINS:,}", path=("parameters", "bins"))
    if p.min_count < 1:
        raise StudyError("min_count must be 1 or more", path=("parameters", "min_count"))


PROTOCOL = Protocol(
    name="describe",
    title="Description by secure sums",
    analysis="description",
    roles={PROVIDER: provider, SERVER: server, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    apart=((PROVIDER, SERVER),),
    messages=(Fields, AgreedFields, Centres, Description, Compared),
    parameters=DescribeParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; the server colludes with no provider.",
    expect=expect,
    check=check,
)
