"""The parameters of SF-PCA, and what follows from them before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from atoll.errors import ParameterError, StudyError, one_of
from atoll.protocols.pca.decompose import check_components
from atoll.protocols.pca.sfpca.ranges import check_bounds
from atoll.protocols.private_options import PrivateParameters
from atoll.secret_matrices.machine import EVERY_PRECISION, Precision
from atoll.study.model import DEFAULT_SUM, Study

COORDINATOR = "coordinator"
LATER = "sfpca-later"
"""The protocol of a later step on shares that were kept."""
VERTICAL = "vertical"
"""The partition in which islands hold columns of the same rows."""
RECIPES = ("auto", "strict", "direct", "fast", "accurate")
PRIVATE_RECIPES = ("auto", "direct")
DIRECT_MARGIN = 40
"""Up to k + 40 columns, strict would open nearly as many numbers as there are eigenvalues."""
MAX_DIRECT = 256
"""Columns beyond which secret rotations of the whole covariance take minutes."""
MAX_STANDARDISED = 1024
"""Columns beyond which secret standard deviations take gigabytes of messages."""
MAX_PROVIDERS = 50


class SFPCAParameters(PrivateParameters, frozen=True):
    """``n_components``: a number, or none for all; ``bounds``: what no value exceeds: one number, or
    (low, high) for each column; ``retry``: whether a refused result may be computed once more;
    ``standardize``: divide columns by their joint standard deviations, which nobody learns; ``digits``:
    bits of components, offset and scores that are released, or "full"; ``accept_determined``: release
    what says the second moments (:mod:`digits`).

    With ``epsilon`` everything that is opened is made from noisy moments (:mod:`private`); ``row_norm``,
    the length at which rows are cut, may be given in place of ``bounds`` or beside them. Numbers of
    rows are public, so neighbours differ in the content of one row."""

    takes = ("epsilon", "delta", "row_norm", "rows", "noise", "colluders", "assume_centered")
    fixed = MappingProxyType({"neighbours": "replace"})

    n_components: int | None = 2
    recipe: str = "auto"
    retry: bool = True
    standardize: bool = False
    bounds: float | tuple[tuple[float, float], ...] | dict[str, tuple[float, float]] | None = None
    columns: tuple[str, ...] | None = None
    digits: int | Literal["full"] | None = None
    accept_determined: bool = False

    @property
    def retries(self) -> bool:
        """Whether a second, more accurate run may follow a refused one."""
        iterates = self.recipe in ("strict", "fast") or (self.recipe == "auto" and not self.whole_spectrum)
        return self.retry and self.epsilon is None and iterates

    @property
    def whole_spectrum(self) -> bool:
        """Whether all components are asked for: direct then opens no more than they say."""
        return self.n_components is None


class Decided(NamedTuple):
    """How many components, and the recipes that are run for them, one after the other while one is refused.

    A recipe is "direct", or a policy of strict.
    """

    k: int
    recipes: tuple[str, ...]


def decide(p: SFPCAParameters, n: int | None, m: int) -> Decided:
    """From the study and the shape of the joint table alone, because every role decides for itself.

    ``n`` is None while nobody knows the rows.
    """
    if n is not None and n < 2:
        raise ParameterError(
            f"the joint table has {n} sample(s) (shape=({n}, {m})) while a minimum of 2 is required"
        )
    most = m if n is None else min(n, m)
    k = most if p.n_components is None else p.n_components
    check_components(k, n, m)
    recipes = _recipes(p, k, m)
    if n is not None and k >= n and recipes != ("direct",):
        raise ParameterError(
            f"{n} rows do not have {k} components: around their mean they span {n - 1} dimensions at most",
            hint=f"n_components={n - 1} or fewer" + (", or recipe='direct'" if m <= MAX_DIRECT else ""),
        )
    return Decided(k, recipes)


def _recipes(p: SFPCAParameters, k: int, m: int) -> tuple[str, ...]:
    if p.standardize and m > MAX_STANDARDISED:
        raise ParameterError(
            f"standardize=True is for up to {MAX_STANDARDISED} columns, the tables have {m}",
            hint="divide the columns by public numbers beforehand",
        )
    if p.epsilon is not None:
        return _private_attempt(m)
    if p.recipe == "direct" or (p.recipe == "auto" and (p.whole_spectrum or direct_shows_no_more(k, m))):
        if m > MAX_DIRECT:
            what = "n_components=None (all)" if p.whole_spectrum else "recipe='direct'"
            raise ParameterError(
                f"{what} is for up to {MAX_DIRECT} columns, the tables have {m}",
                hint="recipe='strict', and fewer components",
            )
        return ("direct",)
    first = {"auto": "default", "strict": "default"}.get(p.recipe, p.recipe)
    return (first, "accurate") if p.retry and first != "accurate" else (first,)


def precisions_of(recipe: str, partition: str) -> tuple[Precision, ...]:
    """Of a recipe's products: where islands hold rows, direct multiplies small matrices only."""
    precise = recipe == "direct" and partition == "horizontal"
    return (Precision.HIGH,) if precise else EVERY_PRECISION


def direct_shows_no_more(k: int, m: int) -> bool:
    """Whether strict would open nearly as many numbers as direct; direct then costs less in all respects."""
    return m <= k + DIRECT_MARGIN


def _private_attempt(m: int) -> tuple[str, ...]:
    if m > MAX_DIRECT:
        raise ParameterError(
            f"with an epsilon, sfpca runs on up to {MAX_DIRECT} columns, the tables have {m}",
            hint="protocol='pppca' or 'dpdpca' with the same epsilon: there the noisy moments are opened",
        )
    return ("direct",)


def small_rows(k: int) -> int:
    """Islands with fewer rows than this are reported."""
    return max(30, 2 * (k + 2))


def small_islands(rows: Mapping[str, int], k: int) -> str | None:
    """What to report of islands of which the outputs may say too much, if there are any."""
    least = small_rows(k)
    small = ", ".join(name for name, n in rows.items() if n < least)
    if not small:
        return None
    return f"{small}: fewer than {least} rows; the opened spectrum may then say much about them"


def check(study: Study) -> None:
    """What the study's types cannot say."""
    p = study.read_parameters(SFPCAParameters)
    k = p.n_components
    if isinstance(k, bool) or (k is not None and k < 1):
        raise StudyError(
            f"n_components={k!r} is not possible",
            hint="a whole number from 1, or none for all",
            path=("parameters", "n_components"),
        )
    if p.recipe not in RECIPES:
        raise StudyError(
            f"there is no recipe {p.recipe!r}", hint=one_of(p.recipe, RECIPES), path=("parameters", "recipe")
        )
    if p.standardize:
        _check_standardised(study)
    if len(study.who("provider")) > MAX_PROVIDERS:
        raise StudyError(f"sfpca runs with up to {MAX_PROVIDERS} providers", path=("party",))
    if study.secure_sum != DEFAULT_SUM or study.sum_options:
        raise StudyError(
            f"sfpca uses the secure sum {DEFAULT_SUM!r}, and only to open the data's range or private centre",
            hint=f'leave secure_sum out, or "{DEFAULT_SUM}"',
            path=("study", "secure_sum"),
        )
    _check_shares(study)
    try:
        check_bounds(p.bounds)
    except ParameterError as error:
        raise StudyError(error.message, hint=error.hint, path=("parameters", "bounds")) from None


def _check_shares(study: Study) -> None:
    holders = {*study.who("provider"), *study.who(COORDINATOR)}
    keeping = holders & set(study.receivers("encrypted"))
    if keeping and study.partition == VERTICAL:
        raise StudyError(
            "outputs stay encrypted only where islands hold rows",
            hint="release components or scores",
            path=("release", "encrypted"),
        )
    if keeping and keeping != holders:
        raise StudyError(
            "every provider and the coordinator keep a share of encrypted outputs, or none of them does",
            hint='encrypted = ["provider", "coordinator"]',
            path=("release", "encrypted"),
        )


def _check_standardised(study: Study) -> None:
    """Refuse what would say the standard deviations, or needs none of this."""
    if study.partition == VERTICAL:
        raise StudyError(
            "standardize is not for islands that hold whole columns",
            hint="each island can standardise its own columns beforehand, without anybody's help",
            path=("parameters", "standardize"),
        )
    if study.receivers("encrypted"):
        raise StudyError(
            "components of standardised columns do not stay encrypted",
            hint="release the components, or the scores",
            path=("release", "encrypted"),
        )
    both = [a for a in study.receivers("scores") if study.releases("components", a)]
    if both:
        raise StudyError(
            f"{both[0].party} would have components and scores of standardised columns, which together "
            "say the standard deviations",
            hint="release one of them to a provider",
            path=("release", "scores"),
        )
