"""A role that runs again where decompositions and optimisers round otherwise sends what it sent.

The number of cores decides how a BLAS library splits some products, and so their last digits; an optimiser
makes more of them, an eigenvector may come with another sign.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from tests.support.examples import EXAMPLES
from tests.support.taps import resumed, tapped

from atoll.protocols.own import Own
from atoll.protocols.synthesis import maximum_entropy

ROLES = {
    "synthesis": "curator",
    "synthesis-latent": "curator",
    "synthesis-marginal": "curator",
    "synthesis-published": "curator",
    "pppca-shares": "server",
    "pppca-private": "server",
    "dpdpca-shares": "data_user",
    "dpdpca-paper": "data_user",
    "meta": "server",
    "glm": "server",
    "least-squares": "server",
    "classifier": "server",
    "sfpca": "coordinator",
}
"""Of every protocol whose sums are opened to one role that computes, the role that tells what it found."""


def otherwise(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every decomposition and optimiser with other last digits, and vectors the other way round."""
    called: list[str] = []

    def replace(module: Any, name: str, other: Callable[[Any], Any]) -> None:
        plain = getattr(module, name)

        def rounded(*args: Any, **options: Any) -> Any:
            called.append(name)
            return other(plain(*args, **options))

        monkeypatch.setattr(module, name, rounded)

    def near(x: Any) -> Any:
        return np.asarray(x) * (1.0 + 2.0**-45)

    def pair(found: Any) -> Any:
        return near(found[0]), -near(found[1])

    def turned(found: Any) -> Any:
        return (-near(found[0]), near(found[1]), -near(found[2])) if isinstance(found, tuple) else near(found)

    def moved(found: Any) -> Any:
        found.x = near(found.x)
        return found

    for module in (np.linalg, scipy.linalg):
        replace(module, "eigh", pair)
        replace(module, "svd", turned)
    replace(np.linalg, "eigvalsh", near)
    replace(scipy.linalg, "cho_solve", near)
    replace(scipy.linalg, "solve_triangular", near)
    replace(scipy.optimize, "minimize", moved)
    return called


@pytest.fixture
def rounding(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    # A module that imports lazily has its names already, and would not see another one.
    from atoll.protocols.learning import normal
    from atoll.protocols.pca import decompose
    from atoll.protocols.synthesis import latent_classes

    def begin() -> list[str]:
        called = otherwise(monkeypatch)
        for module in (normal, decompose):
            monkeypatch.setattr(module, "linalg", scipy.linalg)
        for fitting in (maximum_entropy, latent_classes):
            monkeypatch.setattr(fitting, "optimize", scipy.optimize)
        return called

    return begin


@pytest.mark.parametrize("name", ROLES)
def test_a_role_tells_what_it_told_where_numbers_round_otherwise(
    name: str, rounding: Callable[[], list[str]]
) -> None:
    example = EXAMPLES[name]()
    tap = tapped(example)
    address = next(a for a in example.study.addresses() if a.role == ROLES[name])
    called = rounding()
    assert resumed(example, tap, address, example.own.get(address.party, Own()))[1] == tap.outboxes[address]
    assert called


BITS = """
import hashlib
import numpy as np
from atoll.protocols.synthesis import maximum_entropy, moments
from atoll.threads import one_blas_thread

rng = np.random.default_rng(3)
plan = moments.Plan((3, 2, 4, 2), 5.0, 1e-5)
codes = np.column_stack([rng.integers(0, k, 60) for k in plan.sizes])
sums = moments.contribution(plan, codes) + plan.stage.draw_share(bytes(32))
with one_blas_thread:
    numbers = maximum_entropy.fit(moments.finish(plan, sums))["numbers"]
    import threadpoolctl

    threads = [b["num_threads"] for b in threadpoolctl.threadpool_info() if b["user_api"] == "blas"]
print(hashlib.sha256(numbers.tobytes()).hexdigest(), threads)
"""


def test_the_number_of_cores_does_not_show_in_what_is_fitted() -> None:
    """SciPy's BLAS is loaded by the fit, and is held to one thread as NumPy's is."""
    said = [
        subprocess.run(
            [sys.executable, "-c", BITS],
            env=os.environ | {"OPENBLAS_NUM_THREADS": cores},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split(maxsplit=1)
        for cores in ("1", "2")
    ]
    assert said[0] == said[1]
    assert set(said[0][1].strip("[]\n").split(", ")) == {"1"}
