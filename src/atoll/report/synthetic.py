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
from atoll.protocols.synthesis.schema import Column, encode, sizes_of
from atoll.report.plots import Matrix
from atoll.report.synthesis_plots import (
    Rows,
    cell_shares,
    closest_figure,
    dependence_figure,
    margins_figure,
    strength,
    two_way,
)

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

Codes = npt.NDArray[np.int64]

_ROWS_COMPARED = 2000
"""Rows of each kind whose nearest synthetic row is looked for."""
_ROWS_NEAR = 5000
_LEAST_ROWS = 20


class Comparison(NamedTuple):
    """What a report says. ``closeness`` needs rows that no island had (``holdout``), ``utility`` a target."""

    margins: pd.DataFrame
    pairs: pd.DataFrame
    utility: dict[str, float]
    closeness: dict[str, float]
    kinds: tuple[Rows, ...]
    schema: tuple[Column, ...]
    bins: int
    nearest: tuple[Matrix, Matrix] | None
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
        told = (self.kinds, self.schema, self.bins)
        found: dict[str, Figure] = {
            "margins": margins_figure(*told, "Columns one by one"),
            "dependence": dependence_figure(*told, "Columns two by two"),
        }
        if self.nearest is not None:
            found["closest rows"] = closest_figure(*self.nearest)
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
    distances = [
        0.5 * float(np.abs(cell_shares(own[:, a], sizes[a]) - cell_shares(drawn[:, a], sizes[a])).sum())
        for a in range(len(names))
    ]
    margins = pd.DataFrame({"column": names, "distance": distances})
    utility = {} if target is None else _utility(own, drawn, other, sizes, _place(names, target))
    nearest = None if other is None else _closest(own, drawn, other)
    closeness = {} if nearest is None else _closeness(*nearest)
    kinds = (Rows("real rows", own), Rows("synthetic rows", drawn))
    pairs = _pairs(own, drawn, sizes, names)
    return Comparison(margins, pairs, utility, closeness, kinds, schema, bins, nearest)


def _codes(rows: Any, schema: tuple[Column, ...], bins: int, name: str) -> Codes:
    island = rows if isinstance(rows, Island) else Island.from_frame(rows, name=name)
    if island.n_rows < _LEAST_ROWS:
        raise DataError(
            f"{name}: {island.n_rows} rows are too few to compare", hint=f"at least {_LEAST_ROWS}"
        )
    return encode(island, schema, bins, "clip")


def _place(names: list[str], target: str) -> int:
    if target not in names:
        raise ParameterError(f"target={target!r} is no column", hint=f"columns are {', '.join(names[:8])}")
    return names.index(target)


def _pairs(own: Codes, drawn: Codes, sizes: tuple[int, ...], names: list[str]) -> pd.DataFrame:
    rows = []
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            tables = [two_way(t, a, b, sizes) for t in (own, drawn)]
            distance = 0.5 * float(np.abs(tables[0] - tables[1]).sum())
            rows.append((names[a], names[b], distance, strength(tables[0]), strength(tables[1])))
    return pd.DataFrame(rows, columns=["column", "with", "distance", "real", "synthetic"])


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


def _closest(own: Codes, drawn: Codes, other: Codes) -> tuple[Matrix, Matrix]:
    """How far used rows, and rows that were not used, are from the closest synthetic row."""
    rng = randomness.public(0)
    near = drawn[rng.permutation(len(drawn))[:_ROWS_NEAR]]
    used, unused = (
        _nearest(rows[rng.permutation(len(rows))[:_ROWS_COMPARED]], near) for rows in (own, other)
    )
    return used, unused


def _closeness(used: Matrix, unused: Matrix) -> dict[str, float]:
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


def _nearest(rows: Codes, among: Codes) -> Matrix:
    """The share of columns in which each row differs from the closest of the others."""
    found = np.full(len(rows), np.inf)
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        found[start : start + 100] = (part[:, None, :] != among[None]).mean(axis=2).min(axis=1)
    return found


# ---- pictures and the page ----


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
