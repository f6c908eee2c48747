"""Captured variance of private PCA beside its peers: one table from one run.

    python benchmarks/dp_utility.py [--runs 10] [--peer-python PATH] [--csv FILE] [--check]

Variance in the private top-k subspace over that in the exact one (centred PCA), rows of unit norm,
delta 1e-5. The peers, diffprivlib and OpenDP's PCA, see the pooled rows and the exact number of rows; they
run in an interpreter of their own, because they need other versions of scikit-learn, and get a
bounded time for each cell: a rejection sampler may never finish, and "no fit" is what such a cell shows.
Their guarantee is pure epsilon. Without --peer-python no peer runs, and --check fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from atoll.privacy.dp_moments import Plan
from atoll.privacy.lab.joint_moments import JointPlan, finish_joint, joint_contribution
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import CURATOR, Crowd
from atoll.privacy.paper_forms import centred_scatter, gaussian_matrices
from atoll.randomness import derive, fresh_seed

EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0)
DELTA = 1e-5
TEN = Crowd(10, colluders=1)
DATA = {"digits": (load_digits, 5), "breast-cancer": (load_breast_cancer, 3)}
FLOORS = {
    "digits": dict(zip(EPSILONS, (0.24, 0.77, 0.90, 0.97, 0.99), strict=True)),
    "breast-cancer": {1.0: 0.88, 2.0: 0.94},
}
OURS = "ours: 10 islands, c=1"
PEERS = ("diffprivlib", "opendp")
STUCK = 20
"""So many times its processor seconds a peer may take by the clock, loading included."""

# Runs in the peers' interpreter: prints one JSON list of components for each fit that ends in time, which is
# processor time and starts once everything is loaded: a busy machine takes nothing away from a peer.
PEER_SCRIPT = """
import json, signal, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
peer, path, epsilon = sys.argv[1], sys.argv[2], float(sys.argv[4])
k, runs = int(sys.argv[3]), int(sys.argv[5])
rows = np.load(path)
n, d = rows.shape
if peer == "diffprivlib":
    from diffprivlib.models import PCA
else:
    import opendp.prelude as dp
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    import randomgen, sklearn.decomposition
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[6]))
for _ in range(runs):
    if peer == "diffprivlib":
        model = PCA(n_components=k, epsilon=epsilon, data_norm=1.0, bounds=(np.zeros(d), np.ones(d)))
    else:
        model = dp.sklearn.decomposition.PCA(
            epsilon=epsilon, row_norm=1.0, n_samples=n, n_features=d, n_components=k)
    model.fit(rows)
    print(json.dumps(np.asarray(model.components_)[:k].tolist()), flush=True)
"""

Method = Callable[[np.ndarray, int, float, bytes], np.ndarray]


def staged(crowd: Crowd, **options: str) -> Method:
    def components(rows: np.ndarray, k: int, epsilon: float, seed: bytes) -> np.ndarray:
        plan = Plan(rows.shape[1], 1.0, epsilon, DELTA, crowd=crowd, **options)  # type: ignore[arg-type]
        return rehearse(plan, np.array_split(rows, crowd.owners), seed).spectrum.components[:k]

    return components


def joint(shape: Literal["frobenius", "triangle"]) -> Method:
    def components(rows: np.ndarray, k: int, epsilon: float, seed: bytes) -> np.ndarray:
        plan = JointPlan(rows.shape[1], 1.0, epsilon, DELTA, shape=shape)
        return top(finish_joint(plan, joint_contribution(plan, rows) + plan.noise.draw_share(seed)), k)

    return components


def as_printed(rows: np.ndarray, k: int, epsilon: float, seed: bytes) -> np.ndarray:
    return top(centred_scatter(rows) + gaussian_matrices(seed, rows.shape[1], epsilon, DELTA)[0], k)


def top(matrix: np.ndarray, k: int) -> np.ndarray:
    return np.linalg.eigh(matrix)[1].T[::-1][:k]


METHODS: dict[str, Method] = {
    OURS: staged(TEN, rows="normalise"),
    "ours: trusted curator": staged(CURATOR, rows="normalise"),
    "ours: rows=clip, 10 islands": staged(TEN, rows="clip"),
    "joint release, curator": joint("frobenius"),
    "joint release, triangle noise": joint("triangle"),
    "as printed (not private)": as_printed,
}


def captured(components: np.ndarray, scatter: np.ndarray) -> float:
    basis = np.linalg.qr(components.T)[0]
    best = np.linalg.eigvalsh(scatter)[-len(components) :].sum()
    return float(np.trace(basis.T @ scatter @ basis) / best)


def peer_scores(
    options: argparse.Namespace, peer: str, rows: np.ndarray, k: int, epsilon: float
) -> list[float]:
    """Whatever fits end within the time; an empty list when none does."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.npy"
        np.save(path, rows)
        command = [
            options.peer_python,
            "-c",
            PEER_SCRIPT,
            peer,
            str(path),
            str(k),
            str(epsilon),
            str(options.runs),
            str(options.peer_seconds),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=STUCK * options.peer_seconds, check=False
            )
            output = done.stdout
            if done.returncode not in (0, -signal.SIGPROF):
                print(f"  {peer}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode()
    scatter = centred_scatter(rows)
    return [
        captured(np.array(json.loads(line)), scatter) for line in output.splitlines() if line.endswith("]")
    ]


def table_of(name: str, options: argparse.Namespace) -> dict[str, dict[float, list[float]]]:
    load, k = DATA[name]
    rows = load().data
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scatter, seed = centred_scatter(rows), fresh_seed()
    found: dict[str, dict[float, list[float]]] = {}
    for method, components in METHODS.items():
        found[method] = {
            epsilon: [
                captured(components(rows, k, epsilon, derive(seed, method, str(epsilon), run)), scatter)
                for run in range(options.runs)
            ]
            for epsilon in EPSILONS
        }
    for peer in PEERS if options.peer_python else ():
        found[peer] = {epsilon: peer_scores(options, peer, rows, k, epsilon) for epsilon in EPSILONS}
    chance = k / rows.shape[1] * np.trace(scatter) / np.linalg.eigvalsh(scatter)[-k:].sum()
    found["random subspace"] = {epsilon: [float(chance)] for epsilon in EPSILONS}
    return found


def show(name: str, found: dict[str, dict[float, list[float]]]) -> None:
    print(f"\n{name}, k={DATA[name][1]}: mean (standard error)")
    print(f"{'epsilon':32}" + "".join(f"{epsilon:>16g}" for epsilon in EPSILONS))
    for method, cells in found.items():
        print(f"{method:32}" + "".join(f"{_cell(cells[epsilon]):>16}" for epsilon in EPSILONS))


def _cell(scores: list[float]) -> str:
    if not scores:
        return "no fit"
    if len(scores) == 1:
        return f"{scores[0]:.3f}"
    return f"{np.mean(scores):.3f} ({_error(scores):.3f})"


def _error(scores: list[float]) -> float:
    return float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else 0.0


def complaints(name: str, found: dict[str, dict[float, list[float]]]) -> list[str]:
    """Cells below their floor, or beaten by a peer by more than two standard errors."""
    wrong = []
    for epsilon in EPSILONS:
        ours = found[OURS][epsilon]
        floor = FLOORS[name].get(epsilon, 0.0)
        if np.mean(ours) < floor:
            wrong.append(f"{name}, epsilon {epsilon:g}: {np.mean(ours):.3f} is below {floor}")
        chance = found["random subspace"][epsilon][0]
        for peer in (*PEERS, "joint release, curator"):
            theirs = found.get(peer, {}).get(epsilon, [])
            if theirs and np.mean(theirs) > chance:
                lead = np.mean(theirs) - np.mean(ours)
                if lead > 2 * math.hypot(_error(theirs), _error(ours)):
                    wrong.append(f"{name}, epsilon {epsilon:g}: {peer} is ahead by {lead:.3f}")
    return wrong


def compared(found: dict[str, dict[float, list[float]]]) -> dict[str, int]:
    """In how many cells each peer has a score to compare with."""
    return {peer: sum(map(bool, found.get(peer, {}).values())) for peer in PEERS}


def verdict(wrong: list[str], cells: dict[str, int]) -> str:
    """What was found; nothing is said about a peer that did not run."""
    missing = [f"{peer} not run: no comparison with it" for peer, count in cells.items() if not count]
    run = ", ".join(f"{peer} in {count} cells" for peer, count in cells.items() if count)
    ahead = [f"no peer is ahead by two standard errors; compared: {run}"] if run else []
    return "\n".join([*(wrong or ["every floor holds", *ahead]), *missing])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--peer-python", help="interpreter that has diffprivlib, and opendp with randomgen")
    parser.add_argument(
        "--peer-seconds", type=float, default=30.0, help="processor seconds for all runs of one cell"
    )
    parser.add_argument("--csv", type=Path)
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail when a cell is below its floor or a peer, or when a peer was not run",
    )
    options = parser.parse_args()
    wrong, lines = [], []
    cells = dict.fromkeys(PEERS, 0)
    for name in DATA:
        found = table_of(name, options)
        show(name, found)
        wrong += complaints(name, found)
        cells = {peer: cells[peer] + count for peer, count in compared(found).items()}
        lines += [
            (name, method, epsilon, len(scores), np.mean(scores) if scores else "", _error(scores))
            for method, by_epsilon in found.items()
            for epsilon, scores in by_epsilon.items()
        ]
    if options.csv:
        with options.csv.open("w", newline="") as file:
            csv.writer(file).writerows(
                [("data", "method", "epsilon", "runs", "mean", "standard_error"), *lines]
            )
    print("\n" + verdict(wrong, cells))
    return int(options.check and (bool(wrong) or not all(cells.values())))


if __name__ == "__main__":
    sys.exit(main())
