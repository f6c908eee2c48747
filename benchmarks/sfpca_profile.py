"""Where the processor time of an SF-PCA run goes, and how far it is from multiplying alone.

python -m benchmarks.sfpca_profile --data FOLDER                 MNIST, six islands
python -m benchmarks.sfpca_profile --data FOLDER --case vehicle  another data set of the paper's Figure 5

Needs ``perf`` and Go: the library is built once more with its symbols, which the packaged one lacks, and
the same benchmark is sampled. The bound counts the multiply-adds of all roles at the price that
``atoll bench calibrate`` finds for one, encoding, transforms, noise, packing and messages for nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from atoll.bench import figure5
from atoll.bench.calibrate import calibrate
from atoll.crypto.hazmat import golib
from atoll.data.island import as_islands
from atoll.estimators.pca.estimator import PCA
from atoll.estimators.pca.sfpca import SFPCA
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters, decide
from atoll.protocols.pca.sfpca.planner import Shape, planned
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.rates import PythonRates, Rate, Rates, RingRates
from atoll.secret_matrices.costs.timing import Effort
from benchmarks.measure import show

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    # Of every vector path: the kernels in C (IFMA's are called integers), Lattigo's and our scalar code.
    "transform (NTT)": r"atoll_(integers_)?(forward|backward|balance|factor)"
    r"|\] (forward|backward|balance)\w*\b|ring\..*(ntt|NTT)|product\..*ntt",
    "multiply-add": r"atoll_(integers_)?(accumulate|add_part|multiply|reduce|add\b)"
    r"|\] accumulate|vector\..*([aA]ccumulate|Multiply|[rR]educe|[mM]ul|joined)|stage|sumOf",
    "randomness": r"aes|cipher|ctr|[sS]tream|ternary|[eE]rror|centred|uniform|random|gauss|subtle",
    "packing": r"pack|Residues",
    "encoding and lifting": r"residue|encode|extract|lift|mask|resize|roundShift|Scaled|Into|Polys|Mod",
    "hashing": r"sha256|SHA",
    "Go's own work": r"runtime\.|gcWriteBarrier|sync\.",
}


def kind_of(library: str, symbol: str) -> str:
    """What a sampled function does."""
    if "[.]" not in symbol:
        return "system: fresh memory, scheduling"
    if "libatoll" not in library:
        return "BLAS" if "blas" in library else "hashing" if "crypto" in library else "Python and NumPy"
    for kind, pattern in KINDS.items():
        if re.search(pattern, symbol):
            return kind
    return "rest of the Go library"


def child(library: Path, folder: Path, name: str) -> None:
    """The run that is sampled, and nothing before or after it."""
    golib.LIBRARY_PATH = library  # type: ignore[misc]
    case = figure5.CASES[name]
    blocks = np.array_split(figure5.load(folder, case), figure5.ISLANDS)
    engine = LocalEngine(figure5.LATENCY, figure5.BANDWIDTH)
    control = library.parent / "control"
    control.write_text("enable\n")
    started = time.process_time()
    PCA(case.n_components, protocol="sfpca", bounds=case.bounds, accept_determined=True, engine=engine).fit(
        blocks
    )
    print(time.process_time() - started)
    control.write_text("disable\n")


def sampled(folder: Path, case: str, work: Path) -> tuple[float, dict[str, float], list[tuple[float, str]]]:
    """Processor seconds, shares by kind, and the largest functions."""
    library = work / golib.LIBRARY_PATH.name
    build = ["go", "build", "-buildmode=c-shared", "-trimpath", "-o", str(library), "."]
    subprocess.run(build, cwd=ROOT / "go", check=True)
    os.mkfifo(work / "control")
    run = [sys.executable, "-m", "benchmarks.sfpca_profile", "--child", str(library)]
    record = ["perf", "record", "-q", "-F", "199", "-o", str(work / "perf.data"), "-D", "-1"]
    record += ["--control", f"fifo:{work / 'control'}", "--"]
    options = ["--data", str(folder), "--case", case]
    done = subprocess.run([*record, *run, *options], check=True, capture_output=True, text=True)
    report = ["perf", "report", "-i", str(work / "perf.data"), "--stdio", "-q", "-F", "overhead,dso,symbol"]
    lines = subprocess.run([*report, "-t", "|"], check=True, capture_output=True, text=True).stdout
    shares: dict[str, float] = defaultdict(float)
    functions = []
    for line in lines.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 3 and parts[0].endswith("%"):
            share = float(parts[0].rstrip("%")) / 100
            shares[kind_of(parts[1], parts[2])] += share
            functions.append((share, parts[2][:60]))
    return float(done.stdout.split()[-1]), dict(shares), sorted(functions, reverse=True)[:15]


def only_products(rates: Rates) -> Rates:
    """The same machine, on which nothing costs anything but multiplying."""
    rings = {
        name: RingRates(**{**_nothing(RingRates), "multiply": ring.multiply})
        for name, ring in rates.rings.items()
    }
    return Rates(rates.cores, rates.path, rings, PythonRates(**_nothing(PythonRates)))


def _nothing(of: type[msgspec.Struct]) -> dict[str, Any]:
    return {f.name: Rate(0.0, 0.0) if f.type is Rate else 0.0 for f in msgspec.structs.fields(of)}


def total_effort(folder: Path, name: str, rates: Rates) -> float:
    """Processor seconds of all roles, as these rates have them."""
    case = figure5.CASES[name]
    rows, d = figure5.load(folder, case).shape
    sizes = [len(part) for part in np.array_split(np.arange(rows), figure5.ISLANDS)]
    options = PCA(case.n_components, protocol="sfpca", bounds=case.bounds, accept_determined=True)
    study = SFPCA().study(options, as_islands([np.zeros((1, 1))] * figure5.ISLANDS))
    p = study.read_parameters(SFPCAParameters)
    effort = Effort(figure5.ISLANDS)
    k, recipes = decide(p, rows, d)
    planned(study, recipes[0], Shape(sizes, d, k), Costing(rates, effort))
    return float(effort.providers.sum()) + effort.coordinator_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--case", default="mnist")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    folder = figure5.data_folder(asked.data)
    if asked.child:
        child(Path(asked.child), folder, asked.case)
        return
    rates = calibrate()
    with tempfile.TemporaryDirectory() as work:
        spent, shares, functions = sampled(folder, asked.case, Path(work))
    rows = [[kind, f"{share:.1%}", share * spent] for kind, share in sorted(shares.items(), key=_by_share)]
    show(f"{asked.case}: {spent:.1f} processor seconds of all roles", ["what", "share", "seconds"], rows)
    show("Functions", ["share", "function"], [[f"{share:.1%}", name] for share, name in functions])
    bound = total_effort(folder, asked.case, only_products(rates))
    show(
        "How far from multiplying alone",
        ["", "seconds"],
        [
            ["multiply-adds x the cost of one", bound],
            ["predicted, all steps", total_effort(folder, asked.case, rates)],
            ["measured", spent],
            ["measured / bound", f"{spent / bound:.1f}"],
        ],
    )


def _by_share(item: tuple[str, float]) -> float:
    return -item[1]


if __name__ == "__main__":
    main()
