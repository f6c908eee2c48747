"""Synthetic data beside the real rows: marginal error and classifiers, by table and epsilon.

    [ATOLL_DATA=<folder>] python -m benchmarks.synthesis [--runs 5] [--first-run 0] [--only nltcs adult ...]
                          [--epsilons 0.1 1.0] [--owners 3] [--with ppca marginal paper ...] [--csv FILE]

80 % of the rows are dealt out to owners, of whom one may collude; as many rows are drawn; 20 % are the test.
``tvd2`` and ``tvd3``: mean total-variation distance of all two-way and of 150 three-way tables between
training and synthetic rows. Accuracy: a linear support vector machine that was trained on synthetic rows.

Settings are the synthesizers' own defaults, the same for every table. NLTCS and Adult are read from the data
folder; without it, and beside them, a generated table with known structure and breast cancer in four bins.

Which of NLTCS' columns are "outside" and "money" its file does not say. Column 4 is taken for outside and
column 2 for money; "no privacy" says how well each is predicted from real rows.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import atoll
from atoll.errors import PrivacyWarning

DELTA = 1e-5
TRIPLES = 150
HEADER = ["table", "synthesizer", "epsilon", "owners", "run", "measure", "value"]
KINDS = ("ppca", "marginal", "marginal-classes", "paper")
HIGHER = {"Assoc-acdm", "Assoc-voc", "Bachelors", "Masters", "Prof-school", "Doctorate"}
ADULT_EDGES = {
    "age": range(20, 91, 5),
    "fnlwgt": range(50_000, 800_000, 50_000),
    "capital-gain": (1, 3000, 5000, 7000, 10_000, 15_000, 50_000),
    "capital-loss": (1, 1500, 1700, 1900, 2100, 2500),
    "hours-per-week": (10, 20, 30, 35, 39, 40, 41, 45, 50, 55, 60, 70),
}
Codes = npt.NDArray[np.int64]


class Case(NamedTuple):
    """A table of cells, and what is predicted: a column, and which of its cells count as one class."""

    codes: Codes
    sizes: tuple[int, ...]
    targets: dict[str, tuple[int, npt.NDArray[np.bool_]]]


def nltcs(folder: Path) -> Case:
    codes = np.load(folder / "nltcs.npz")["X"].astype(np.int64)
    yes = np.array([False, True])
    return Case(codes, (2,) * codes.shape[1], {"outside": (4, yes), "money": (2, yes)})


def adult(folder: Path) -> Case:
    frame = pd.read_csv(folder / "adult.csv.gz", skipinitialspace=True)
    frame = frame[(frame != "?").all(axis=1)].drop(columns="split")
    frame.columns = [name.replace("_", "-").replace(".", "-") for name in frame.columns]
    frame = frame.drop(columns=[c for c in frame.columns if c.startswith("education-num")])
    codes, sizes, levels = [], [], {}
    for name in frame.columns:
        if name in ADULT_EDGES:
            codes.append(np.digitize(frame[name], list(ADULT_EDGES[name])))
            sizes.append(len(ADULT_EDGES[name]) + 1)
        else:
            found, places = np.unique(frame[name], return_inverse=True)
            levels[name] = found
            codes.append(places)
            sizes.append(len(found))
    names = list(frame.columns)
    school = np.array([level in HIGHER for level in levels["education"]])
    rich = np.array([level.startswith(">") for level in levels["income"]])
    targets = {"salary": (names.index("income"), rich), "education": (names.index("education"), school)}
    return Case(np.column_stack(codes), tuple(sizes), targets)


def breast_cancer(folder: Path) -> Case:
    """Ten columns in four bins between round public bounds, repeated to some thousand rows."""
    del folder
    data = load_breast_cancer()
    tops = (30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.2, 0.3, 0.1)
    X = np.minimum(data.data[:, :10] / np.array(tops) * 4, 3).astype(np.int64)
    codes = np.column_stack([X, data.target])
    rng = np.random.default_rng(0)
    return Case(
        codes[rng.integers(0, len(codes), 5000)], (*(4,) * 10, 2), {"benign": (10, np.array([False, True]))}
    )


def generated(folder: Path) -> Case:
    """Twelve columns of two to six levels that follow two hidden ones."""
    del folder
    rng, n = np.random.default_rng(1), 20_000
    hidden = rng.normal(size=(n, 2))
    sizes = (2, 3, 4, 6, 2, 3, 4, 6, 2, 3, 4, 2)
    codes = []
    for k in sizes:
        score = hidden @ rng.normal(size=2) + rng.normal(size=n)
        codes.append(np.searchsorted(np.sort(rng.normal(0, 1.2, k - 1)), score))
    return Case(np.column_stack(codes), sizes, {"last": (11, np.array([False, True]))})


CASES = {"nltcs": nltcs, "adult": adult, "breast-cancer": breast_cancer, "generated": generated}


# ---- measures ----


def distance(one: Codes, other: Codes, sizes: tuple[int, ...], order: int) -> float:
    """Mean total-variation distance of the tables of so many columns."""
    chosen = list(combinations(range(len(sizes)), order))
    if len(chosen) > TRIPLES and order > 2:
        picked = np.random.default_rng(0).choice(len(chosen), TRIPLES, replace=False)
        chosen = [chosen[i] for i in picked]
    found = []
    for columns in chosen:
        shape = [sizes[c] for c in columns]
        shares = [
            np.bincount(np.ravel_multi_index(t[:, columns].T, shape), minlength=int(np.prod(shape))) / len(t)
            for t in (one, other)
        ]
        found.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found))


def accuracy(train: Codes, test: Codes, case: Case, target: str) -> float:
    """Of a linear machine on all other columns."""
    at, classes = case.targets[target]
    others = [c for c in range(len(case.sizes)) if c != at]
    y, truth = classes[train[:, at]], classes[test[:, at]]
    if y.all() or not y.any():
        return float((truth == y[0]).mean())
    encoder = OneHotEncoder(categories=[range(case.sizes[c]) for c in others]).fit(train[:1, others])
    machine = LinearSVC(C=1.0 if max(case.sizes) == 2 else 0.1, dual=False, tol=1e-3)
    fitted = machine.fit(encoder.transform(train[:, others]), y)
    return float(fitted.score(encoder.transform(test[:, others]), truth))


# ---- synthesizers ----


def synthesizer(kind: str, epsilon: float, columns: dict[str, Any]) -> Any:
    if kind == "paper":
        return atoll.PPCASynthesizer(epsilon, columns=columns, calibration="paper")
    if kind == "ppca":
        return atoll.PPCASynthesizer(epsilon, DELTA, columns=columns)
    decoder = "tree" if kind == "marginal" else "latent-classes"
    return atoll.MarginalSynthesizer(epsilon, DELTA, columns=columns, decoder=decoder)


def measured(case: Case, train: Codes, test: Codes, drawn: Codes) -> dict[str, float]:
    found = {name: accuracy(drawn, test, case, name) for name in case.targets}
    found["tvd2"] = distance(train, drawn, case.sizes, 2)
    return found | {"tvd3": distance(train, drawn, case.sizes, 3)}


def runs(name: str, case: Case, asked: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Lines of (table, synthesizer, epsilon, owners, run, measure, value)."""
    columns = {f"c{a}": [str(i) for i in range(k)] for a, k in enumerate(case.sizes)}
    for run in range(asked.first_run, asked.first_run + asked.runs):
        order = np.random.default_rng(run).permutation(len(case.codes))
        cut = int(0.8 * len(order))
        train, test = case.codes[order[:cut]], case.codes[order[cut:]]
        for measure, value in measured(case, train, test, train).items():
            yield name, "no privacy", 0.0, asked.owners, run, measure, value
        parts = [pd.DataFrame(part, columns=list(columns)) for part in np.array_split(train, asked.owners)]
        for epsilon in asked.epsilons:
            for kind in asked.kinds:
                began = time.process_time()
                fitted = synthesizer(kind, epsilon, columns).fit(parts)
                drawn = fitted.sample(None if kind == "paper" else len(train), random_state=run)
                seconds = time.process_time() - began
                found = measured(case, train, test, drawn.astype(np.int64).to_numpy())
                for measure, value in (found | {"processor seconds": seconds}).items():
                    yield name, kind, epsilon, asked.owners, run, measure, value


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0])
    parser.add_argument("--owners", type=int, default=3)
    parser.add_argument("--with", nargs="*", dest="kinds", default=list(KINDS[:2]), choices=KINDS)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore", PrivacyWarning)
    folder = os.environ.get("ATOLL_DATA")
    for name in asked.only:
        if name in ("nltcs", "adult") and folder is None:
            print(f"{name}: left out, ATOLL_DATA names no folder")
            continue
        lines = []
        for line in runs(name, CASES[name](Path(folder or ".")), asked):
            lines.append(line)
            if asked.csv:  # at once: a long run that is ended leaves what it has
                with asked.csv.open("a", newline="") as file:
                    csv.writer(file).writerow(line)
        table = pd.DataFrame(lines, columns=HEADER)
        shown = table.pivot_table("value", ["table", "epsilon", "synthesizer"], "measure", ["mean", "std"])
        print(shown.round(4).to_string(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
