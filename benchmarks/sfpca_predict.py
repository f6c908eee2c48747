"""What ``atoll review`` predicts for SF-PCA against what then happens, on the paper's Figure 5.

python -m benchmarks.sfpca_predict --data FOLDER                   all cases that are there
python -m benchmarks.sfpca_predict --data FOLDER --cases wine      some
python -m benchmarks.sfpca_predict --data FOLDER --shipped         by the rates that come with the package

Measures the machine's rates first, as ``atoll bench calibrate`` does. Prints predicted / measured: the
promise is a factor of 1.5 either way, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from atoll.bench import figure5
from atoll.bench.calibrate import calibrate
from atoll.secret_matrices.costs import rates
from benchmarks.measure import show
from benchmarks.sfpca_runs import Measured, Point, in_own_process

FIGURES = {
    "seconds": "wall s, all in one process",
    "apart_seconds": "wall s, each on its own machine",
    "provider_cpu": "CPU s of the busiest island",
    "coordinator_cpu": "CPU s of the coordinator",
    "provider_bytes": "bytes sent by an island",
    "megabytes": "peak MB of the process",
}
FACTOR = 1.5


def compared(name: str, run: Measured) -> list[list[object]]:
    """Predicted and measured, figure by figure."""
    rows: list[list[object]] = []
    for figure, words in FIGURES.items():
        predicted, measured = run.predicted[figure], float(getattr(run, figure))
        ratio = predicted / measured
        within = "yes" if 1 / FACTOR <= ratio <= FACTOR else "NO"
        rows.append([name, words, predicted, measured, ratio, within])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cases", nargs="*", default=[])
    parser.add_argument("--islands", type=int, default=figure5.ISLANDS)
    parser.add_argument("--shipped", action="store_true")
    asked = parser.parse_args()
    folder = figure5.data_folder(asked.data)
    with tempfile.TemporaryDirectory() as kept:
        os.environ[rates.FILE_VARIABLE] = str(Path(kept) / "rates.json")
        if not asked.shipped:
            rates.store(calibrate())
        rows: list[list[object]] = []
        for name in figure5.chosen(asked.cases, folder):
            run = in_own_process(Point(case=name, data=str(folder), parties=asked.islands))
            rows += compared(name, run)
            for line in rows[-len(FIGURES) :]:
                print(*(f"{x:.3g}" if isinstance(x, float) else x for x in line), sep=", ", flush=True)
    columns = ["data", "", "predicted", "measured", "ratio", f"within {FACTOR}"]
    show("SF-PCA: what review predicts, and what happens", columns, rows)


if __name__ == "__main__":
    main()
