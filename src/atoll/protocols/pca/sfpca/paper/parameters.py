"""The parameters of Algorithm 1 as the paper has them, and what follows from them before anything runs."""

from __future__ import annotations

from math import ceil, log2
from typing import Literal, NamedTuple

import msgspec

from atoll.errors import ParameterError, StudyError
from atoll.protocols.pca.sfpca.parameters import MAX_PROVIDERS, VERTICAL, check_threshold
from atoll.protocols.pca.sfpca.ranges import check_bounds
from atoll.study.model import DEFAULT_SUM, Parameters, Study

SETS = {"paper-14": (1 << 14, 7)}
"""Ring degree and levels between refreshes (the paper's N and lambda) of each set of CKKS parameters."""
DEALER = "dealer"
INSECURE: set[str] = set()
"""Sets that only tests use, which put them here."""
Method = Literal["precomp", "seq"]
Factorisation = Literal["qr", "dqr"]


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a study says in place of a simulation: data, in units of their range, are multiplied by 2^scale;
    2^variances[i] is about the variance of component i then; ``places``: the interval of each
    approximation's argument; ``stretches``: by what powers of two rows are multiplied before QR^T."""

    scale: int
    variances: tuple[int, ...]
    places: dict[str, tuple[float, float]]
    stretches: dict[str, tuple[int, ...]] = {}


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paper's D.3: ``scale`` of the Laplace distribution whose quantiles are on the list, in the units
    of what is opened (an entry of a component is at most 1); ``values``: how many there are, without it twice
    as many as are drawn.
    """

    scale: float
    values: int | None = None


class Algorithm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paper's letters, with the defaults of its appendix B.

    ``p``: power iterations; ``alpha``: oversampling, rho = psi + alpha; ``w``: steps of shifted QR for each
    eigenvalue; ``degree``: of the Chebyshev approximations; ``method``: Precomp or Seq, "auto" for
    the cheaper one; ``qr``: in Seq, QR^T of the joint rows or DQR^T of what islands hold apart, "auto" for
    DQR^T where ``xi`` log2 n_max < log2 m; ``nonlinear``: square roots and signs by series, or on
    shares ("lss-op"; "lss" for step 6 too), with triples of the study's dealer, where it has one;
    ``margin``: by how much intervals are wider on each side than the simulation says; ``intervals``: stated,
    instead of a simulation at the provider with most rows; ``tolerance``: the largest certificate
    with which a result is released; ``seed``: of the public sketch, without one the study's digest is;
    ``parameters``: the set of CKKS parameters; ``verify``: whether providers compute all that the coordinator
    computes, and answer for nothing else; ``noise``: drawn from a shuffled list, as the paper's D.3 has it,
    which is no differential privacy.
    """

    p: int = 10
    alpha: int = 4
    w: int = 5
    degree: int = 31
    method: Literal["auto", "precomp", "seq"] = "auto"
    qr: Literal["auto", "qr", "dqr"] = "auto"
    xi: float = 3.0
    nonlinear: Literal["chebyshev", "lss", "lss-op"] = "chebyshev"
    margin: float = 2.0
    intervals: Stated | None = None
    tolerance: float = 0.1
    seed: int | None = None
    parameters: str = "paper-14"
    verify: bool = False
    noise: Noise | None = None

    @property
    def slots(self) -> int:
        """Numbers in a ciphertext (the paper's t)."""
        return SETS[self.parameters][0] // 2


class PaperParameters(Parameters, frozen=True):
    """``n_components``: the paper's psi; ``bounds``, ``columns``, ``accept_determined``, ``threshold``: as in
    sfpca; ``paper``: the algorithm's own."""

    n_components: int = 2
    bounds: float | tuple[tuple[float, float], ...] | dict[str, tuple[float, float]] | None = None
    columns: tuple[str, ...] | None = None
    accept_determined: bool = False
    threshold: int | None = None
    paper: Algorithm = Algorithm()

    @property
    def sketched(self) -> int:
        """Rows of the sketch (the paper's rho)."""
        return self.n_components + self.paper.alpha


class Course(NamedTuple):
    """How a run goes on tables of a known shape."""

    method: Method
    qr: Factorisation


def decide(study: Study, rows: tuple[int, ...], m: int) -> Course:
    """From the study and the tables' shapes alone, because every role decides for itself.

    ``rows``: every provider's n_i; where islands hold columns, the rows that they have in common.
    """
    p = study.read_parameters(PaperParameters)
    vertical = study.partition == VERTICAL
    n = rows[0] if vertical else sum(rows)
    _check_shape(p, n, m)
    if vertical:
        return Course("seq", "qr")
    if p.paper.qr == "dqr" and not p.sketched <= max(rows) <= p.paper.slots:
        raise ParameterError(
            f"DQR^T of {p.sketched} rows needs an island with so many samples and none with more than "
            f"{p.paper.slots:,}, the largest has {max(rows):,}",
            hint='qr = "qr"',
        )
    return course(rows, m, p.paper, p.sketched)


def course(rows: tuple[int, ...], m: int, paper: Algorithm, rho: int) -> Course:
    """Where islands hold rows: Precomp or Seq, and for Seq QR^T or, by the paper's rule, DQR^T."""
    n_max = max(rows)
    method: Method = cheaper(n_max, m, paper) if paper.method == "auto" else paper.method
    if paper.qr == "dqr":
        return Course("seq", "dqr")
    apart = paper.qr == "auto" and method == "seq" and rho <= n_max <= paper.slots
    return Course(method, "dqr" if apart and paper.xi * log2(n_max) < log2(m) else "qr")


def _check_shape(p: PaperParameters, n: int, m: int) -> None:
    if n < 2:
        raise ParameterError(
            f"the joint table has {n} sample(s) (shape=({n}, {m})) while a minimum of 2 is required"
        )
    if p.sketched > min(n, m):
        raise ParameterError(
            f"n_components={p.n_components} with alpha={p.paper.alpha} make a sketch of {p.sketched} rows, "
            f"of a joint table of {n} rows and {m} columns",
            hint=f"n_components + alpha up to {min(n, m)}",
        )


def cheaper(n_max: int, m: int, paper: Algorithm) -> Method:
    """Precomp or Seq, by products with clear numbers: m x m each time, or m x n_i and back."""
    seq = 2 * min(n_max, m) * ceil(n_max / paper.slots)
    return "precomp" if m <= seq else "seq"


# ---- checks before anybody sees the tables ----

_MOST_ITERATIONS = 1000


def check(study: Study) -> None:
    """What the study's types cannot say."""
    p = study.read_parameters(PaperParameters)
    _check_numbers(p)
    _check_dealer(study, p)
    _check_noise(study, p)
    if p.paper.qr == "dqr" and (p.paper.method == "precomp" or study.partition == VERTICAL):
        raise StudyError(
            "DQR^T factorises what islands with rows hold apart in Seq: precomp has nothing of the kind",
            hint='method = "seq", or qr = "qr"',
            path=("parameters", "paper", "qr"),
        )
    if study.partition == VERTICAL and p.paper.intervals is None:
        raise StudyError(
            "where islands hold columns, none of them can simulate the algorithm: state the intervals",
            hint="intervals = { scale = ..., variances = [...], places = { ... } }",
            path=("parameters", "paper", "intervals"),
        )
    if study.partition == VERTICAL and p.paper.method == "precomp":
        raise StudyError(
            "where islands hold columns nobody has a covariance of its own to prepare",
            hint='method = "seq"',
            path=("parameters", "paper", "method"),
        )
    if len(study.who("provider")) > MAX_PROVIDERS:
        raise StudyError(f"sfpca-paper runs with up to {MAX_PROVIDERS} providers", path=("party",))
    if study.secure_sum != DEFAULT_SUM or study.sum_options:
        raise StudyError(
            f"sfpca-paper uses the secure sum {DEFAULT_SUM!r}, and only to open the data's range",
            hint=f'leave secure_sum out, or "{DEFAULT_SUM}"',
            path=("study", "secure_sum"),
        )
    try:
        check_bounds(p.bounds)
    except ParameterError as error:
        raise StudyError(error.message, hint=error.hint, path=("parameters", "bounds")) from None
    _check_scores(study)
    if p.threshold is not None:
        check_threshold(study, p.threshold)


def may_leave(study: Study) -> int:
    """Providers that outputs can do without, once all products are done."""
    enough = study.read_parameters(PaperParameters).threshold
    return 0 if enough is None else len(study.who("provider")) - enough


def _check_dealer(study: Study, p: PaperParameters) -> None:
    """Whoever deals triples knows what hides numbers on their way: it must be nobody who sees them."""
    dealers = study.who(DEALER)
    if len(dealers) > 1:
        raise StudyError("one dealer of triples is enough, the study names several", path=("party",))
    if dealers and p.paper.nonlinear == "chebyshev":
        raise StudyError(
            f"{dealers[0].party} deals triples, which nonlinear='chebyshev' has no use for",
            hint='nonlinear = "lss" or "lss-op", or a study without a dealer',
            path=("parameters", "paper", "nonlinear"),
        )
    others = {a.party for role in ("provider", "coordinator", "consumer") for a in study.who(role)}
    if dealers and dealers[0].party in others:
        raise StudyError(
            f"{dealers[0].party} deals triples and plays another role: it could read what it must not",
            hint="name a party of its own as dealer, or none: the providers then make the triples themselves",
            path=("party",),
        )


def _check_noise(study: Study, p: PaperParameters) -> None:
    """What a shuffled list cannot be had with."""
    noise, path = p.paper.noise, ("parameters", "paper", "noise")
    if noise is None:
        return
    if not _LEAST_NOISE <= noise.scale <= 1 or (
        noise.values is not None and not 1 <= noise.values <= _MOST_VALUES
    ):
        raise StudyError(
            f"noise of scale {noise.scale!r} from {noise.values!r} values is not possible",
            hint=f"a scale of {_LEAST_NOISE:g} to 1, and up to {_MOST_VALUES:,} values",
            path=path,
        )
    if p.paper.verify:
        raise StudyError(
            "with verify, providers make parts for nothing that they did not compute: nobody can compute a "
            "list whose order nobody knows",
            hint="verify = false, or no noise",
            path=path,
        )
    if study.receivers("scores"):
        raise StudyError(
            "noise of a shuffled list is for components and variances: exact scores would undo it",
            hint="release no scores, or no noise",
            path=path,
        )


_LEAST_NOISE, _MOST_VALUES = 2.0**-12, 1 << 16


def _check_numbers(p: PaperParameters) -> None:
    a = p.paper
    limits: tuple[tuple[str, float, float, float], ...] = (
        ("p", a.p, 1, _MOST_ITERATIONS),
        ("alpha", a.alpha, 0, _MOST_ITERATIONS),
        ("w", a.w, 1, _MOST_ITERATIONS),
        ("degree", a.degree, 3, _most_degree(a)),
        ("xi", a.xi, 0, 1e6),
        ("margin", a.margin, 1, 1e6),
        ("tolerance", a.tolerance, 1e-6, 0.5),
    )
    if a.parameters not in SETS:
        raise StudyError(
            f"there is no set of CKKS parameters {a.parameters!r}",
            hint=f"there is {', '.join(SETS)}",
            path=("parameters", "paper", "parameters"),
        )
    if isinstance(p.n_components, bool) or p.n_components < 1:
        raise StudyError(
            f"n_components={p.n_components!r} is not possible",
            hint="a whole number from 1",
            path=("parameters", "n_components"),
        )
    for name, value, least, most in limits:
        if isinstance(value, bool) or not least <= value <= most:
            raise StudyError(
                f"{name}={value!r} is not possible",
                hint=f"{least:g} to {most:g}",
                path=("parameters", "paper", name),
            )
    if a.intervals is not None:
        _check_stated(a.intervals, p.sketched)


def _check_stated(stated: Stated, rho: int) -> None:
    path = ("parameters", "paper", "intervals")
    if not -60 <= stated.scale <= 60 or len(stated.variances) != rho:
        raise StudyError(
            f"intervals come with a scale within 60 powers of two, and {rho} variances", path=path
        )
    for place, (low, high) in stated.places.items():
        least = -float("inf") if place.endswith("sign") else 0.0
        if not least < low < high < float("inf"):
            raise StudyError(
                f"the interval of {place} must be positive (a sign's may not be), the lower end first",
                path=(*path, "places", place),
            )


def _most_degree(paper: Algorithm) -> int:
    """Of a Chebyshev series that fits between two refreshes: it takes 1 + ceil(log2(d + 1)) levels."""
    levels = SETS.get(paper.parameters, (0, 7))[1]
    return int(2 ** (levels - 1) - 1)


def _check_scores(study: Study) -> None:
    """Own scores go to all providers or, where these have the components, to any; common ones to any."""
    taking, providers = set(study.receivers("scores")), study.who("provider")
    alone = [a for a in providers if a in taking and not study.releases("components", a)]
    if study.partition != VERTICAL and alone and len(alone) < len(providers):
        raise StudyError(
            "either every provider has its scores from encrypted components, or none of them does",
            hint='scores = ["provider"]',
            path=("release", "scores"),
        )
