"""Private PCA and analytics across data islands.

From the ground up; a layer imports only what stands before it:

- :mod:`errors`: every error, with a hint; :mod:`lazy`: slow packages, imported when first used
- :mod:`shown`: small tables for terminals and notebooks
- :mod:`registry`: things by name, Atoll's own and those of other packages
- :mod:`threads`: work on all cores
- :mod:`randomness`: seeds and what is made of them; :mod:`codec`: messages to bytes and back
- :mod:`fixedpoint`: numbers as integers of 192 bits
- :mod:`study`: what is computed, by whom, and who gets what
- :mod:`network`: how a role sends, receives and keeps a record
- :mod:`crypto`: encryption, secret sharing, fingerprints
- :mod:`data`: islands and their tables; :mod:`privacy`: noise, its guarantees, and the ledger
- :mod:`secure_sums`: adding so that only the total is seen
- :mod:`secret_matrices`: computing on matrices that nobody sees; :mod:`secret_numbers`: on shares of numbers
- :mod:`protocols`: what the roles of a study do
- :mod:`runtime`: engines that run the roles, and results
- :mod:`review`: what a study means, before it runs
- :mod:`report`: tables, pictures and texts
- :mod:`estimators`: ``atoll.PCA``, ``atoll.GLM`` and others, ``atoll.secure_sum``
- :mod:`bench`: time and bytes, measured
- :mod:`web`: the dashboard
- :mod:`cli`: the ``atoll`` command
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.errors import AtollError
    from atoll.estimators.alignment import align
    from atoll.estimators.learning.classifiers import LinearSVC, LogisticRegression
    from atoll.estimators.learning.cluster import KMeans
    from atoll.estimators.learning.descent import GradientDescent
    from atoll.estimators.learning.description import describe
    from atoll.estimators.learning.glm import GLM
    from atoll.estimators.learning.linear import Lasso, LinearRegression, Ridge
    from atoll.estimators.pca.estimator import PCA
    from atoll.estimators.progress import show_progress
    from atoll.estimators.summation import secure_sum
    from atoll.estimators.synthesis.marginal import MarginalSynthesizer
    from atoll.estimators.synthesis.ppca import PPCASynthesizer
    from atoll.protocols.learning.summary import Summary
    from atoll.runtime.local.engine import LocalEngine
    from atoll.runtime.local.faults import Faults
    from atoll.runtime.nats.engine import NatsEngine
    from atoll.runtime.result import Result, load_result
    from atoll.runtime.studies import load_study
    from atoll.study.model import Study

__version__ = "0.1.0"

__all__ = [
    "GLM",
    "PCA",
    "AtollError",
    "Faults",
    "GradientDescent",
    "Island",
    "KMeans",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LocalEngine",
    "LogisticRegression",
    "MarginalSynthesizer",
    "NatsEngine",
    "PPCASynthesizer",
    "Result",
    "Ridge",
    "Study",
    "Summary",
    "align",
    "describe",
    "load_result",
    "load_study",
    "secure_sum",
    "show_progress",
]

# Public names are imported when first used: the command line and each module alone start without
# pandas and scikit-learn, which take seconds to import.
_HOMES = {
    "GradientDescent": "atoll.estimators.learning.descent",
    "GLM": "atoll.estimators.learning.glm",
    "KMeans": "atoll.estimators.learning.cluster",
    "Lasso": "atoll.estimators.learning.linear",
    "LinearRegression": "atoll.estimators.learning.linear",
    "LinearSVC": "atoll.estimators.learning.classifiers",
    "LogisticRegression": "atoll.estimators.learning.classifiers",
    "Ridge": "atoll.estimators.learning.linear",
    "MarginalSynthesizer": "atoll.estimators.synthesis.marginal",
    "PPCASynthesizer": "atoll.estimators.synthesis.ppca",
    "PCA": "atoll.estimators.pca.estimator",
    "AtollError": "atoll.errors",
    "Faults": "atoll.runtime.local.faults",
    "Island": "atoll.data.island",
    "LocalEngine": "atoll.runtime.local.engine",
    "NatsEngine": "atoll.runtime.nats.engine",
    "Result": "atoll.runtime.result",
    "Study": "atoll.study.model",
    "Summary": "atoll.protocols.learning.summary",
    "align": "atoll.estimators.alignment",
    "describe": "atoll.estimators.learning.description",
    "load_result": "atoll.runtime.result",
    "load_study": "atoll.runtime.studies",
    "secure_sum": "atoll.estimators.summation",
    "show_progress": "atoll.estimators.progress",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'atoll' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
