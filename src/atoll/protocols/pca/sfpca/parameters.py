"""The parameters of SF-PCA, and what follows from them before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from atoll.errors import ParameterError, StudyError, one_of
from atoll.protocols.pca.decompose import check_components
from atoll.protocols.pca.sfpca.ranges import check_bounds
from atoll.protocols.pca.sfpca.recipes.covariance import OPENED_SKETCH
from atoll.protocols.pca.sfpca.recipes.strict import OVERSAMPLING
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS, sketches
from atoll.protocols.private_options import PrivateParameters
from atoll.secret_matrices.machine import EVERY_PRECISION, Precision
from atoll.study.model import DEFAULT_SUM, Study

COORDINATOR = "coordinator"
LATER = "sfpca-later"
"""The protocol of a later step on shares that were kept."""
VERTICAL = "vertical"
"""The partition in which islands hold columns of the same rows."""
RECIPES = ("auto", "strict", "direct", "fast", "accurate", OPENED_SKETCH)
PRIVATE_RECIPES = ("auto", "direct")
DIRECT_MARGIN = 40
"""Up to k + 40 columns, strict would open nearly as many numbers as there are eigenvalues."""
MAX_AUTO = 128
"""Columns up to which recipe = "auto" may take direct because it is faster."""
MAX_DIRECT = 256
"""Columns beyond which secret rotations of the whole covariance take minutes."""
MAX_STANDARDISED = 1024
"""Columns beyond which secret standard deviations take gigabytes of messages."""
MAX_PROVIDERS = 256


class StudyLinks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Links between every two parties, as the study takes them to be: ``latency`` in milliseconds one way,
    ``bandwidth`` in Mbit/s. Agreed, not measured: what is opened may rest on them."""

    latency: float = 20.0
    bandwidth: float = 1000.0

    @property
    def seconds(self) -> float:
        return self.latency / 1000

    @property
    def bytes_a_second(self) -> float:
        return self.bandwidth * 125_000

    def words(self) -> str:
        return f"links of {self.latency:g} ms and {self.bandwidth:,g} Mbit/s"


class SFPCAParameters(PrivateParameters, frozen=True):
    """``n_components``: a number, or none for all; ``bounds``: what no value exceeds: one number, or
    (low, high) for each column; ``retry``: whether a refused result may be computed once more;
    ``standardize``: divide columns by their joint standard deviations, which nobody learns;
    ``least_deviation``: what these are at least, as a part of what no value of the column exceeds;
    ``digits``: bits of components, offset and scores that are released, or "full";
    ``accept_determined``: release what says the second moments (:mod:`digits`); ``spectrum``: "ritz"
    forbids recipes that open all eigenvalues; ``links``: between the parties; ``direct_up_to``: columns up to
    which "auto" takes direct, which the planner fills in from the links (:mod:`settled`) before anybody
    approves the study; ``eigen``: "encrypted" opens no spectrum and no total variance, only whether the
    result holds; ``threshold``: how many providers are enough for outputs, once all products are done (None:
    all of them).

    With ``epsilon`` everything that is opened is made from noisy moments (:mod:`private`); ``row_norm``,
    the length at which rows are cut, may be given in place of ``bounds`` or beside them. Numbers of
    rows are public, so neighbours differ in the content of one row."""

    takes = ("epsilon", "delta", "row_norm", "rows", "noise", "colluders", "assume_centered")
    fixed = MappingProxyType({"neighbours": "replace"})

    n_components: int | None = 2
    recipe: str = "auto"
    retry: bool = True
    standardize: bool = False
    least_deviation: float | None = None
    bounds: float | tuple[tuple[float, float], ...] | dict[str, tuple[float, float]] | None = None
    columns: tuple[str, ...] | None = None
    digits: int | Literal["full"] | None = None
    accept_determined: bool = False
    spectrum: Literal["auto", "ritz"] = "auto"
    links: StudyLinks = StudyLinks()
    direct_up_to: int | None = None
    eigen: Literal["masked", "encrypted"] = "masked"
    threshold: int | None = None

    @property
    def hides_spectrum(self) -> bool:
        """Whether nothing but a bit is opened besides the outputs."""
        return self.eigen == "encrypted"

    @property
    def direct_limit(self) -> int:
        """Columns up to which "auto" takes direct; unsettled, those where strict saves nothing."""
        if self.spectrum == "ritz":
            return 0
        if self.direct_up_to is not None:
            return self.direct_up_to
        return 0 if self.n_components is None else self.n_components + DIRECT_MARGIN

    @property
    def opens_all_eigenvalues(self) -> bool | None:
        """Whether direct is what runs; None where that rests on the number of columns."""
        if self.recipe == "direct" or self.epsilon is not None:
            return True
        if self.recipe != "auto" or self.spectrum == "ritz" or self.hides_spectrum:
            return False
        if self.whole_spectrum:
            return True
        return None if self.columns is None else len(self.columns) <= self.direct_limit

    @property
    def retries(self) -> bool:
        """Whether a second, more accurate run may follow a refused one."""
        iterates = self.recipe in ("strict", "fast", "auto", OPENED_SKETCH) and not self.opens_all_eigenvalues
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


def may_leave(study: Study) -> int:
    """Providers that outputs can do without, once all products are done."""
    enough = study.read_parameters(SFPCAParameters).threshold
    return 0 if enough is None else len(study.who("provider")) - enough


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
    if p.hides_spectrum:
        first, second = EFFORTS
        return (second,) if p.recipe == "accurate" else (first, second) if p.retry else (first,)
    _check_ritz(p, k, m)
    if p.recipe == "direct" or (p.recipe == "auto" and (p.whole_spectrum or m <= p.direct_limit)):
        if m > MAX_DIRECT:
            what = "n_components=None (all)" if p.whole_spectrum else "recipe='direct'"
            raise ParameterError(
                f"{what} is for up to {MAX_DIRECT} columns, the tables have {m}",
                hint="recipe='strict', and fewer components",
            )
        return ("direct",)
    first = {"auto": "default", "strict": "default"}.get(p.recipe, p.recipe)
    return (first, "accurate") if p.retry and first != "accurate" else (first,)


def _check_ritz(p: SFPCAParameters, k: int, m: int) -> None:
    """As many Ritz values as columns are all eigenvalues."""
    if p.spectrum == "ritz" and k + OVERSAMPLING >= m:
        raise ParameterError(
            f"spectrum='ritz' forbids opening all eigenvalues: {k} components of {m} columns open that many",
            hint=f"fewer components than {m - OVERSAMPLING}, or leave spectrum out"
            if m > OVERSAMPLING + 1
            else "leave spectrum out: with so few columns nothing less is opened",
            option="spectrum",
        )


def precisions_of(recipe: str, partition: str, k: int, m: int) -> tuple[Precision, ...]:
    """Of a recipe's products: where islands hold rows, some multiply small matrices only."""
    precise = on_the_covariance(recipe, k, m) and partition == "horizontal"
    return (Precision.HIGH,) if precise else EVERY_PRECISION


def on_the_covariance(recipe: str, k: int, m: int) -> bool:
    """Whether a recipe works on the joint covariance itself, from exact sums, and makes no sketch."""
    return recipe == "direct" or (recipe in EFFORTS and not sketches(k, m))


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


MAX_SKETCHING = 7
"""Of so many islands, all but one learn less than a bit of each eigenvector from an opened sketch."""


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
    _check_spectrum(p)
    if p.hides_spectrum:
        _check_hidden(study, p)
    if p.recipe == OPENED_SKETCH and len(study.who("provider")) > MAX_SKETCHING:
        raise StudyError(
            f"recipe={OPENED_SKETCH!r} is for up to {MAX_SKETCHING} islands: of more, all but one could "
            "confirm a guess of the covariance",
            hint='recipe = "auto"',
            path=("parameters", "recipe"),
        )
    if p.least_deviation is not None and not (p.standardize and 0 < p.least_deviation < 1):
        raise StudyError(
            "least_deviation is a part of a column's range, between 0 and 1, for standardize = true",
            hint="0.05, say, where no column's deviation is below a twentieth of its largest value",
            path=("parameters", "least_deviation"),
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
    if p.threshold is not None:
        check_threshold(study, p.threshold)
    try:
        check_bounds(p.bounds)
    except ParameterError as error:
        raise StudyError(error.message, hint=error.hint, path=("parameters", "bounds")) from None


def _check_spectrum(p: SFPCAParameters) -> None:
    if p.spectrum == "ritz" and (p.opens_all_eigenvalues or p.recipe == "direct" or p.whole_spectrum):
        what = "n_components=None (all)" if p.whole_spectrum else "recipe='direct'"
        what = what if p.epsilon is None else "an epsilon (noisy ones)"
        raise StudyError(
            f"spectrum='ritz' forbids opening all eigenvalues, which {what} does",
            hint="leave one of the two out",
            path=("parameters", "spectrum"),
        )
    if p.spectrum == "ritz" and p.recipe == OPENED_SKETCH:
        raise StudyError(
            f"spectrum='ritz' allows Ritz values only, recipe={OPENED_SKETCH!r} opens more",
            hint="leave one of the two out",
            path=("parameters", "spectrum"),
        )
    if not (p.links.latency >= 0 and p.links.bandwidth > 0):
        raise StudyError(
            "links need a latency from 0 (ms) and a bandwidth above 0 (Mbit/s)",
            hint="links = { latency = 20, bandwidth = 1000 }",
            path=("parameters", "links"),
        )
    if p.direct_up_to is not None and not 0 <= p.direct_up_to <= MAX_DIRECT:
        raise StudyError(
            f"direct_up_to={p.direct_up_to} is not possible",
            hint=f"columns, 0 to {MAX_DIRECT}; left out, the planner decides by the links",
            path=("parameters", "direct_up_to"),
        )


_HIDDEN_RECIPES = ("auto", "accurate")


def may_hide(study: Study, p: SFPCAParameters) -> bool:
    """Whether the study could ask for eigen = "encrypted", but for the variances that it releases."""
    plain = p.epsilon is None and not p.standardize and study.partition != VERTICAL
    return plain and p.bounds is not None and p.n_components is not None


def _check_hidden(study: Study, p: SFPCAParameters) -> None:
    """Refuse what would open, or needs, what eigen = "encrypted" keeps closed."""
    wrong: list[tuple[bool, str, str, tuple[str, ...]]] = [
        (
            p.bounds is None,
            "needs bounds: without them the data's range would be opened",
            "bounds = { column = [low, high], ... }, as close to the values as is public",
            ("parameters", "bounds"),
        ),
        (
            p.n_components is None,
            "needs a number of components",
            "n_components = 2, say",
            ("parameters", "n_components"),
        ),
        (
            p.recipe not in _HIDDEN_RECIPES,
            f"has no recipe {p.recipe!r}",
            'recipe = "auto", or "accurate"',
            ("parameters", "recipe"),
        ),
        (
            p.standardize,
            "does not standardise columns",
            "divide the columns by public numbers beforehand",
            ("parameters", "standardize"),
        ),
        (p.epsilon is not None, "takes no epsilon", "leave one of the two out", ("parameters", "epsilon")),
        (
            study.partition == VERTICAL,
            "is for islands that hold rows",
            'leave eigen out, or "masked"',
            ("parameters", "eigen"),
        ),
        (
            bool(study.receivers("explained_variance")),
            "releases no variances",
            "leave explained_variance out",
            ("release", "explained_variance"),
        ),
    ]
    for is_wrong, words, hint, path in wrong:
        if is_wrong:
            raise StudyError(f'eigen = "encrypted" {words}', hint=hint, path=path)


def check_threshold(study: Study, enough: int) -> None:
    """A number of providers, at least two, and outputs that they can release without products."""
    providers = study.who("provider")
    path = ("parameters", "threshold")
    if isinstance(enough, bool) or not 2 <= enough <= len(providers):
        raise StudyError(
            f"threshold={enough!r} is not possible with {len(providers)} providers",
            hint=f"2 to {len(providers)}, or leave it out: then all are needed",
            path=path,
        )
    alone = set(study.receivers("scores")) - set(study.receivers("components"))
    if alone or (study.partition == VERTICAL and study.receivers("scores")):
        raise StudyError(
            "threshold is for components: scores of whoever has none are products, which need all providers",
            hint='with release = { encrypted = ["provider", "coordinator"] } a threshold projects rows later',
            path=path,
        )


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
