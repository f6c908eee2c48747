"""Synthetic rows beside an owner's own: margins, dependence, use for learning, closeness; one page.

Everything here reads the owner's rows and stays with the owner: the page shows exact figures of them, and
is no release. Rows are compared as cells of the schema, so that numbers and categories are treated alike.
"""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from atoll import randomness
from atoll.data.island import Island
from atoll.errors import DataError, ParameterError
from atoll.lazy import lazy
from atoll.protocols.synthesis.schema import Column, cells_of, encode, levels_of, sizes_of
from atoll.report.plots import COLOURS, STYLE

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROWS_COMPARED = 2000
"""Rows of each kind whose nearest synthetic row is looked for."""
_ROWS_NEAR = 5000
_PANELS = 12
_LEAST_ROWS = 20
_NAMED = 5
"""Cells of a column that are named below their bars; of more, every so many."""


class Comparison(NamedTuple):
    """What a report says. ``closeness`` needs rows that no island had (``holdout``), ``utility`` a target."""

    margins: pd.DataFrame
    pairs: pd.DataFrame
    utility: dict[str, float]
    closeness: dict[str, float]
    shares: dict[str, tuple[Floats, Floats]]
    cells: dict[str, tuple[str, ...]]
    """What each cell of each column is: a level, or where a number's cell begins."""
    nearest: tuple[Floats, Floats] | None
    """The share of columns in which used rows, and rows of the hold-out, differ from the closest row."""

    def __repr__(self) -> str:
        lines = [
            f"margins differ by {self.margins['distance'].mean():.3f} on average (total variation)",
            f"two-way tables differ by {self.pairs['distance'].mean():.3f}",
        ]
        lines += [f"{name}: {value:.3f}" for name, value in {**self.utility, **self.closeness}.items()]
        return "<Comparison: " + "; ".join(lines) + ">"

    def figures(self) -> dict[str, Figure]:
        """Margins column by column, dependence pair by pair, and how close the closest rows are."""
        with mpl.rc_context(STYLE):
            found = {"margins": _margins_figure(self), "dependence": _dependence_figure(self)}
            if self.nearest is not None:
                found["closest rows"] = _closest_figure(*self.nearest)
            return found

    def save(self, path: str | Path) -> Path:
        """One HTML page that loads nothing from anywhere. It shows exact figures of the owner's rows."""
        path = Path(path)
        path.write_text(_page(self), encoding="utf-8")
        return path


def compare(
    real: Any,
    synthetic: Any,
    schema: tuple[Column, ...],
    bins: int,
    *,
    holdout: Any = None,
    target: str | None = None,
) -> Comparison:
    """``real``: an owner's rows; ``holdout``: rows of the same kind that were in no island."""
    sizes = sizes_of(schema, bins)
    own, drawn = _codes(real, schema, bins, "real"), _codes(synthetic, schema, bins, "synthetic")
    other = None if holdout is None else _codes(holdout, schema, bins, "holdout")
    names = [column.name for column in schema]
    shares = {
        name: (_shares(own[:, a], sizes[a]), _shares(drawn[:, a], sizes[a])) for a, name in enumerate(names)
    }
    distances = [0.5 * float(np.abs(one - two).sum()) for one, two in shares.values()]
    margins = pd.DataFrame({"column": names, "distance": distances})
    utility = {} if target is None else _utility(own, drawn, other, sizes, _place(names, target))
    nearest = None if other is None else _closest(own, drawn, other)
    closeness = {} if nearest is None else _closeness(*nearest)
    cells = {column.name: _cells(column, bins) for column in schema}
    pairs = _pairs(own, drawn, sizes, names)
    return Comparison(margins, pairs, utility, closeness, shares, cells, nearest)


def _cells(column: Column, bins: int) -> tuple[str, ...]:
    if column.is_number:
        return tuple(f"{start:g}" for start in cells_of(column, bins).starts[:-1])
    return levels_of(column)


def _codes(rows: Any, schema: tuple[Column, ...], bins: int, name: str) -> Codes:
    island = rows if isinstance(rows, Island) else Island.from_frame(rows, name=name)
    if island.n_rows < _LEAST_ROWS:
        raise DataError(
            f"{name}: {island.n_rows} rows are too few to compare", hint=f"at least {_LEAST_ROWS}"
        )
    return encode(island, schema, bins, "clip")


def _shares(codes: Codes, size: int) -> Floats:
    return np.bincount(codes, minlength=size) / len(codes)


def _place(names: list[str], target: str) -> int:
    if target not in names:
        raise ParameterError(f"target={target!r} is no column", hint=f"columns are {', '.join(names[:8])}")
    return names.index(target)


def _pairs(own: Codes, drawn: Codes, sizes: tuple[int, ...], names: list[str]) -> pd.DataFrame:
    rows = []
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            tables = [
                _shares(t[:, a] * sizes[b] + t[:, b], sizes[a] * sizes[b]).reshape(sizes[a], sizes[b])
                for t in (own, drawn)
            ]
            distance = 0.5 * float(np.abs(tables[0] - tables[1]).sum())
            rows.append((names[a], names[b], distance, _strength(tables[0]), _strength(tables[1])))
    return pd.DataFrame(rows, columns=["column", "with", "distance", "real", "synthetic"])


def _strength(table: Floats) -> float:
    """Cramér's V: 0 where columns are independent, 1 where one says the other."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.nansum(np.where(expected > 0, (table - expected) ** 2 / expected, 0.0))
    free = min((table.sum(axis=0) > 0).sum(), (table.sum(axis=1) > 0).sum()) - 1
    return float(np.sqrt(squared / free)) if free > 0 else 0.0


def _utility(
    own: Codes, drawn: Codes, other: Codes | None, sizes: tuple[int, ...], at: int
) -> dict[str, float]:
    """Accuracy on real rows of a logistic regression that learned from synthetic ones, beside real ones."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    order = randomness.public(0).permutation(len(own))
    cut = int(0.7 * len(own))
    train, test = (own, other) if other is not None else (own[order[:cut]], own[order[cut:]])
    columns = [c for c in range(len(sizes)) if c != at]
    encoder = OneHotEncoder(categories=[range(sizes[c]) for c in columns]).fit(own[:1, columns])
    found = {}
    for name, rows in (("learned from synthetic rows", drawn), ("learned from real rows", train)):
        if len(np.unique(rows[:, at])) < 2:
            found[name] = float((test[:, at] == rows[0, at]).mean())
            continue
        model = LogisticRegression(max_iter=500).fit(encoder.transform(rows[:, columns]), rows[:, at])
        found[name] = float(model.score(encoder.transform(test[:, columns]), test[:, at]))
    most = np.bincount(train[:, at]).argmax()
    return found | {"always the most frequent class": float((test[:, at] == most).mean())}


def _closest(own: Codes, drawn: Codes, other: Codes) -> tuple[Floats, Floats]:
    """How far used rows, and rows that were not used, are from the closest synthetic row."""
    rng = randomness.public(0)
    near = drawn[rng.permutation(len(drawn))[:_ROWS_NEAR]]
    used, unused = (
        _nearest(rows[rng.permutation(len(rows))[:_ROWS_COMPARED]], near) for rows in (own, other)
    )
    return used, unused


def _closeness(used: Floats, unused: Floats) -> dict[str, float]:
    """Whether synthetic rows lie closer to rows that were used than to rows that were not."""
    # The chance that of a used and an unused row the used one is closer; ties count half.
    ranks = np.searchsorted(np.sort(unused), used, side="left") + np.searchsorted(
        np.sort(unused), used, side="right"
    )
    return {
        "distance to the closest row, used rows": float(used.mean()),
        "distance to the closest row, hold-out": float(unused.mean()),
        "rows that occur exactly, used rows": float((used == 0).mean()),
        "rows that occur exactly, hold-out": float((unused == 0).mean()),
        "membership inference (0.5: none)": float(1.0 - ranks.mean() / (2 * len(unused))),
    }


def _nearest(rows: Codes, among: Codes) -> Floats:
    """The share of columns in which each row differs from the closest of the others."""
    found = np.full(len(rows), np.inf)
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        found[start : start + 100] = (part[:, None, :] != among[None]).mean(axis=2).min(axis=1)
    return found


# ---- pictures and the page ----


def _margins_figure(found: Comparison) -> Figure:
    shown = list(found.shares)[:_PANELS]
    rows = -(-len(shown) // 4)
    figure = Figure(figsize=(11, 2.1 * rows + 0.6), layout="constrained")
    for place, name in enumerate(shown):
        axes = figure.add_subplot(rows, 4, place + 1)
        real, synthetic = found.shares[name]
        at = np.arange(len(real))
        axes.bar(at - 0.2, real, 0.4, color=COLOURS[0], label="real")
        axes.bar(at + 0.2, synthetic, 0.4, color=COLOURS[1], label="synthetic")
        axes.set_title(name.replace("$", r"\$"), fontsize=9)
        shown_cells = range(0, len(real), -(-len(real) // _NAMED))
        axes.set_xticks(shown_cells, [_short(found.cells[name][i]) for i in shown_cells])
        axes.tick_params(labelsize=8)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _short(cell: str) -> str:
    return (cell if len(cell) <= 8 else f"{cell[:7]}…").replace("$", r"\$")


def _closest_figure(used: Floats, unused: Floats) -> Figure:
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    places = np.unique(np.round(np.concatenate([used, unused]), 6))
    width = 0.4 * float(np.diff(places).min()) if len(places) > 1 else 0.05
    for side, rows, name in ((-0.5, used, "rows that were used"), (0.5, unused, "hold-out")):
        shares = [float(np.isclose(rows, place).mean()) for place in places]
        axes.bar(places + side * width, shares, width, color=COLOURS[0 if side < 0 else 1], label=name)
    axes.set(xlabel="columns in which the closest synthetic row differs (share)", ylabel="share of rows")
    axes.legend(frameon=False)
    return figure


def _dependence_figure(found: Comparison) -> Figure:
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    top = max(0.1, 1.05 * float(found.pairs[["real", "synthetic"]].to_numpy().max(initial=0.0)))
    axes.plot([0, top], [0, top], color="#999999", linewidth=1)
    axes.scatter(found.pairs["real"], found.pairs["synthetic"], s=18, color=COLOURS[0])
    axes.set(
        xlim=(0, top), ylim=(0, top), xlabel="Cramér's V, real rows", ylabel="Cramér's V, synthetic rows"
    )
    return figure


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}
td{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:left}
td:last-child{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}
.note{background:#fff6e0;padding:.6rem 1rem;border-left:4px solid #e69f00}"""


def _page(found: Comparison) -> str:
    pictures = "".join(
        f"<h2>{name.capitalize()}</h2>{_svg(figure)}" for name, figure in found.figures().items()
    )
    worst = found.pairs.nlargest(10, "distance")
    tables = [
        _table("Margins: total-variation distance", found.margins[["column", "distance"]].to_numpy()),
        _table(
            "Two-way tables that differ most",
            [(f"{a} with {b}", d) for a, b, d in worst[["column", "with", "distance"]].to_numpy()],
        ),
    ]
    for title, values in (
        ("Use for learning: accuracy on real rows", found.utility),
        ("Closeness", found.closeness),
    ):
        if values:
            tables.append(_table(title, list(values.items())))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Synthetic rows beside real ones</title><style>{_STYLE}</style></head><body><main>"
        "<h1>Synthetic rows beside real ones</h1>"
        '<p class="note">This page shows exact figures of the rows it was made from. It is for their owner, '
        f"and is no release.</p>{pictures}{''.join(tables)}</main></body></html>"
    )


def _table(title: str, rows: Any) -> str:
    lines = "".join(f"<tr><td>{escape(str(name))}</td><td>{value:.3f}</td></tr>" for name, value in rows)
    return f"<h2>{escape(title)}</h2><table>{lines}</table>"


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    return drawn[drawn.index("<svg") :]
