"""Whether the accuracy certificate tells right results from wrong ones: spectra made to mislead it.

    python -m benchmarks.sfpca_certificate [--every N] [--processes 2] [--check]
    python -m benchmarks.sfpca_certificate --eigen encrypted [--sketch] [--every N] ...

Each case is a table whose covariance has a given spectrum, run by the strict recipe on plain integers
with the rounding of six parties. A result is wrong when the cosine of any of its k components with the
exact one is below 0.9999. The certificate's verdict is compared with what the run would have released.
A run that breaks off before there are components is neither right nor wrong, and is counted apart.
"auto" is the default policy, followed by the accurate one where the first was refused. With ``--eigen
encrypted`` it is the opened bit that is judged, of both courses; ``--sketch``: few columns are sketched too.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.errors import CertificateRefused, RangeOverflow
from atoll.protocols.pca.sfpca.recipes import unopened
from atoll.protocols.pca.sfpca.recipes.certificate import TOLERANCE, Certificate
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Inputs
from atoll.protocols.pca.sfpca.recipes.moments import exact_moments, on_grid, quick_moments
from atoll.protocols.pca.sfpca.recipes.strict import strict
from atoll.randomness import derive
from atoll.secret_matrices.machine import Machine, Shared
from atoll.secret_matrices.simulated import Simulated

Floats = npt.NDArray[np.float64]

RIGHT = 0.9999
REFUSED_LIMIT = 0.10
PARTIES = 6
ROWS = 400


class Case(NamedTuple):
    """A spectrum and how many of its components are asked for."""

    family: str
    name: str
    spectrum: Floats
    k: int


class Verdict(NamedTuple):
    """What the certificate said of a run, and what was true of it."""

    family: str
    name: str
    policy: str
    bound: float
    cosine: float
    """Not a number where nothing was computed."""

    @property
    def computed(self) -> bool:
        return not isnan(self.cosine)

    @property
    def accepted(self) -> bool:
        return self.bound <= TOLERANCE

    @property
    def right(self) -> bool:
        return self.cosine >= RIGHT


# ---- spectra ----


def tail(top: list[float], rest: Floats) -> Floats:
    return np.sort(np.concatenate([top, rest]))[::-1]


def geometric(m: int, ratio: float, first: float = 1.0) -> Floats:
    return first * ratio ** np.arange(m, dtype=float)


def flat_spectra() -> Iterator[Case]:
    for m in (50, 60, 100):
        for slope in (0.0, 1e-4, 1e-3, 3e-3):
            for k in (1, 3):
                yield Case("flat", f"slope {slope:g}, m={m}, k={k}", 1 - slope * np.arange(m), k)
        for level in (0.05, 0.2, 0.4, 0.7, 0.9):
            for k in (1, 3):
                top = [float(2 - i / k) for i in range(k)]
                even = tail(top, np.full(m - k, level))
                yield Case("flat", f"flat tail at {level:g}, m={m}, k={k}", even, k)
                uneven = level * np.linspace(1, 0.5, m - k)
                yield Case("flat", f"falling tail at {level:g}, m={m}, k={k}", tail(top, uneven), k)


def twin_spectra() -> Iterator[Case]:
    for gap in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1):
        for place, k in (("first", 2), ("last", 3), ("cut", 2), ("deep", 5)):
            spectrum = geometric(80, 0.6)
            i = {"first": 0, "last": 1, "cut": 1, "deep": 3}[place]
            spectrum[i + 1] = spectrum[i] * (1 - gap)
            yield Case("twin", f"{place} pair within {gap:g}, k={k}", spectrum, k)
        both = tail([1.0, 1 - gap], np.full(78, 0.1))
        yield Case("twin", f"pair within {gap:g} on a flat tail, k=2", both, 2)
        triple = tail([1.0, 1 - gap, 1 - 2 * gap], geometric(97, 0.8, 0.3))
        yield Case("twin", f"triple within {gap:g}, k=3", triple, 3)


def falling_spectra() -> Iterator[Case]:
    for ratio in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98):
        for k, m in ((1, 60), (5, 80), (10, 100)):
            yield Case("geometric", f"ratio {ratio:g}, m={m}, k={k}", geometric(m, ratio), k)
    for power in (0.5, 1.0, 2.0, 4.0):
        for k, m in ((2, 60), (5, 100)):
            spectrum = (1 + np.arange(m, dtype=float)) ** -power
            yield Case("power law", f"power {power:g}, m={m}, k={k}", spectrum, k)


def steep_spectra() -> Iterator[Case]:
    for smallest in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        for k in (2, 6):
            top = list(np.geomspace(1, smallest, k))
            for drop in (0.5, 0.05):
                spectrum = tail(top, geometric(70, 0.9, smallest * drop))
                yield Case("ill-conditioned", f"1 to {smallest:g}, then {drop:g} of it, k={k}", spectrum, k)


def cases() -> list[Case]:
    return [*flat_spectra(), *twin_spectra(), *falling_spectra(), *steep_spectra()]


# ---- runs ----


def table(spectrum: Floats, seed: int) -> Floats:
    """Rows whose covariance has exactly this spectrum, up to scale, in a random basis."""
    rng, m = np.random.default_rng(seed), len(spectrum)
    basis, _ = np.linalg.qr(rng.normal(size=(m, m)))
    rows = rng.normal(size=(ROWS, m))
    left, _, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    return np.asarray((left * np.sqrt(spectrum)) @ basis.T)


def exact_components(X: Floats, k: int) -> Floats:
    _, _, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return np.asarray(right[:k])


def run(case: Case, policy: str, seed: int) -> Verdict:
    X = table(case.spectrum, seed)
    largest = float(np.abs(X).max())
    exponent, m = int(np.ceil(np.log2(largest))), X.shape[1]
    moments_of = exact_moments if policy in unopened.EFFORTS else quick_moments
    moments = moments_of(on_grid(X, exponent, DATA_FRACTION))
    names = tuple(f"p{i}/provider" for i in range(PARTIES))
    inputs = Inputs(ROWS, m, names, "simulated", moments, derive(bytes(32), "certificate", seed), plays=names)
    # As if the study's bounds were the largest magnitude, for every column.
    inputs = inputs._replace(most_variance=m * (largest / 2.0**exponent) ** 2)
    machine = Simulated(PARTIES, np.random.default_rng(seed).random)
    bound, cosine = asyncio.run(judged(machine, inputs, case.k, policy, exact_components(X, case.k)))
    return Verdict(case.family, case.name, policy, bound, cosine)


async def judged(
    machine: Simulated, inputs: Inputs, k: int, policy: str, exact: Floats
) -> tuple[float, float]:
    """The certificate's bound, and the worst cosine of what it vouches for (or would have)."""
    with letting_pass() as seen:
        try:
            if policy in unopened.EFFORTS:
                found = await unopened.unopened(machine, inputs, k, unopened.EFFORTS[policy])
            else:
                found = await strict(machine, inputs, k, POLICIES[policy])
        except (CertificateRefused, RangeOverflow, ValueError):
            return (seen[0] if seen else inf), nan
        components = await machine.released(found.components, frozenset())
    assert components is not None
    return seen[0], float(np.abs(np.sum(components * exact, axis=1)).min())


@contextmanager
def letting_pass() -> Iterator[list[float]]:
    """Certificates note their bound, bits whether it holds, and refuse nothing."""
    seen: list[float] = []
    check, passes = Certificate.check, unopened.passes

    async def noted(machine: Machine, x: Shared) -> bool:
        seen.append(0.0 if await passes(machine, x) else inf)
        return True

    Certificate.check = lambda self: seen.append(self.bound)  # type: ignore[method-assign]
    unopened.passes = noted
    try:
        yield seen
    finally:
        Certificate.check, unopened.passes = check, passes  # type: ignore[method-assign]


def all_runs(policies: tuple[str, ...], sketch: bool, case: Case, seed: int) -> list[Verdict]:
    """Every policy, and auto: the first that counts, or else the last."""
    if sketch:
        unopened.WHOLE_UP_TO = 0
    made = {policy: run(case, policy, seed) for policy in policies}
    first = made["default" if "default" in made else policies[0]]
    auto = first if first.accepted else made["accurate" if "accurate" in made else policies[-1]]
    return [*made.values(), auto._replace(policy="auto")]


# ---- tables ----


def counts(verdicts: list[Verdict]) -> Counter[tuple[bool, bool]]:
    """Of the runs that were computed: how many were accepted, or right, or both."""
    return Counter((v.accepted, v.right) for v in verdicts if v.computed)


def line(label: str, verdicts: list[Verdict]) -> str:
    found = counts(verdicts)
    passed, right = found[True, False], found[True, True] + found[False, True]
    share = found[False, True] / right if right else 0.0
    return (
        f"{label:28} {len(verdicts):5} {found[True, True]:9} {found[False, True]:9} {share:7.1%}"
        f" {passed:9} {found[False, False]:9} {len(verdicts) - found.total():9}"
    )


def show(verdicts: list[Verdict]) -> None:
    print(f"{'':28} {'runs':>5} {'right,':>9} {'right,':>9} {'':7} {'wrong,':>9} {'wrong,':>9} {'not':>9}")
    print(
        f"{'':28} {'':5} {'accepted':>9} {'refused':>9} {'share':>7} {'accepted':>9} {'refused':>9}"
        f" {'computed':>9}"
    )
    for family in dict.fromkeys(v.family for v in verdicts):
        print(line(family, [v for v in verdicts if v.family == family and v.policy != "auto"]))
    for policy in dict.fromkeys(v.policy for v in verdicts):
        these = [v for v in verdicts if v.policy == policy]
        print(line(f"{policy}, flat and twin", [v for v in these if v.family in MADE_FOR_IT]))
        print(line(f"{policy}, all", these))
    print(line("all runs", [v for v in verdicts if v.policy != "auto"]))


MADE_FOR_IT = ("flat", "twin")


def failures(verdicts: list[Verdict]) -> list[str]:
    """What must not be: any wrong result that passes; too many right ones refused on flat and twin spectra.

    What is refused need not be computable; what is accepted has to be.
    The fast policy is not held to the latter: what it refuses is computed again with the accurate one.
    """
    said = [
        f"{'wrong' if v.computed else 'not computed'}, accepted: {v}"
        for v in verdicts
        if v.accepted and not v.right
    ]
    masked = any(v.policy in POLICIES for v in verdicts)  # a bit may refuse more
    for policy in ("default", "accurate", "auto") if masked else ():
        found = counts([v for v in verdicts if v.policy == policy and v.family in MADE_FOR_IT])
        right = found[True, True] + found[False, True]
        if found[False, True] > REFUSED_LIMIT * right:
            said.append(f"{policy}: {found[False, True]} of {right} right results were refused")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--every", type=int, default=1, help="take every n-th spectrum only")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="fail where the certificate does")
    parser.add_argument("--eigen", choices=("masked", "encrypted"), default="masked")
    parser.add_argument("--sketch", action="store_true", help="with encrypted: sketch few columns too")
    parser.add_argument("--list", action="store_true", help="print every run")
    options = parser.parse_args()
    chosen = list(enumerate(cases()))[:: options.every]
    with ProcessPoolExecutor(options.processes) as pool:
        policies = tuple(POLICIES if options.eigen == "masked" else unopened.EFFORTS)
        runs = partial(all_runs, policies, options.sketch)
        made = pool.map(runs, [case for _, case in chosen], [seed for seed, _ in chosen])
        verdicts = [verdict for group in made for verdict in group]
    if options.list:
        for v in verdicts:
            print(f"{v.policy:9} {v.bound:10.3g} {v.cosine:12.8f} {v.family}: {v.name}")
    show(verdicts)
    wrong = failures(verdicts) if options.check else []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
