"""Each kind of fit with columns split, as a protocol."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import ParameterError, StudyError
from atoll.network import Compared
from atoll.protocols.base import Circumstances, Expectation, Protocol
from atoll.protocols.learning.columns import disclosed, split
from atoll.protocols.learning.columns.consent import ColumnsParameters, check_columns, check_consent
from atoll.protocols.learning.columns.course import Leader, Owner, Sizes, Told
from atoll.protocols.learning.columns.lloyd import Clusters, LloydLeader, LloydOwner, lloyd_sizes
from atoll.protocols.learning.columns.proximal import Lasso, LassoLeader, LassoOwner, lasso_sizes
from atoll.protocols.learning.columns.released import CONSUMER, PROVIDER, SERVER, CommonRows, OwnPart, Rest
from atoll.protocols.learning.columns.smooth import Problem, SmoothLeader, SmoothOwner, SmoothSizes
from atoll.protocols.learning.columns.split import Kind
from atoll.protocols.learning.columns.table import Held, Joint, Part
from atoll.protocols.learning.design import INTERCEPT
from atoll.protocols.learning.rows import Fit, check_stays, plain
from atoll.study.model import Study

_SCORES = "the summed scores of a joint direction, row by row, and products of its coefficients"
_SLOPES = (
    "the slope of the loss in every row (from which, with the target, follows the row's score), and how the "
    "joint model is made of the directions so far"
)
_ENCRYPTED = 'solver = "encrypted" opens coefficients only'
_NEITHER = "or split the rows: then only sums over rows are opened"


class LeastSquaresColumns(ColumnsParameters, frozen=True):
    """``penalty`` and its weight ``alpha``; ``tol``: the part of the objective that a further step may still
    save when a fit has settled."""

    penalty: Literal["none", "l2", "l1"] = "none"
    alpha: float = 0.0
    fit_intercept: bool = True
    tol: float = 1e-16
    max_iter: int = 2000


class ClassifierColumns(ColumnsParameters, frozen=True):
    """As of :class:`~atoll.protocols.learning.classifier.ClassifierParameters`."""

    loss: Literal["logistic", "squared_hinge", "hinge"] = "logistic"
    C: float | None = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    tol: float = 1e-16


class KMeansColumns(ColumnsParameters, frozen=True):
    """As of :class:`~atoll.protocols.learning.kmeans.KMeansParameters`."""

    n_clusters: int = 8
    init: tuple[tuple[float, ...], ...] | None = None
    seed: int = 0
    max_iter: int = 300
    tol: float = 0.0


def protocol(kind: Kind) -> Protocol:
    """The protocol of one kind of fit."""
    return Protocol(
        name=kind.name,
        title=kind.title,
        analysis=kind.analysis,
        roles={
            PROVIDER: lambda net, study, own, record: split.provider(kind, net, study, own, record),
            SERVER: lambda net, study, own, record: split.server(kind, net, study, own, record),
            CONSUMER: lambda net, study, own, record: split.consumer(kind, net, study, own, record),
        },
        data_roles=frozenset({PROVIDER}),
        single_roles=frozenset({SERVER}),
        apart=((PROVIDER, SERVER),),
        messages=(
            *(Held, Joint, Told, split.Due, split.Total, OwnPart, Rest),
            *(CommonRows, Fit, Compared),
        ),
        parameters=kind.parameters,
        outputs=split.OUTPUTS,
        learns=lambda study: disclosed.learns(kind, study),
        adversary="Everyone follows the protocol but keeps what they see; the server and the island that "
        "leads see summed scores of every row, and this study accepts that.",
        partitions=("vertical",),
        expect=lambda study, d: disclosed.counted(kind, study, Circumstances(d)),
        counted=lambda study, at, more: disclosed.counted(kind, study, at, more),
        steps=lambda study, d: kind.usual(study.read_parameters(kind.parameters), d),
        further=lambda study, d: _further(kind, study, d),
        check=lambda study: _check(kind, study),
    )


def _further(kind: Kind, study: Study, d: int) -> Expectation:
    usual, longer = (disclosed.counted(kind, study, Circumstances(d), more) for more in (0, 1))
    return Expectation(*(b - a for a, b in zip(usual, longer, strict=True)))


def _check(kind: Kind, study: Study) -> None:
    p, group = study.read_parameters(kind.parameters), study.who(PROVIDER)
    check_columns(p, group, needs_target=kind.needs_target)
    check_stays(study)
    if p.max_iter < 1:
        raise ParameterError(f"max_iter={p.max_iter} must be 1 or more", option="max_iter")
    if not 0.0 <= p.tol < 1.0:
        raise ParameterError(f"tol={p.tol!r} must be 0 or more, and below 1", option="tol")
    kind.check(study)
    check_consent(p, group, kind.opened, kind.instead)


# ---- least squares, ridge, lasso ----


def _squares(p: LeastSquaresColumns, joint: Joint) -> Problem:
    alpha = p.alpha if p.penalty == "l2" else 0.0
    return Problem("squares", joint.rows, 1, 1, 1.0, alpha, p.fit_intercept, 0.0, p.tol, p.max_iter)


def _lasso(p: LeastSquaresColumns, joint: Joint) -> Lasso:
    owners = max(1, len(joint.widths))
    return Lasso(joint.rows, owners, p.alpha, p.fit_intercept, 1e-6 * p.tol, p.max_iter)


def _squares_sizes(p: LeastSquaresColumns, joint: Joint) -> Sizes:
    return lasso_sizes(_lasso(p, joint)) if p.penalty == "l1" else SmoothSizes(_squares(p, joint))


def _squares_leader(p: LeastSquaresColumns, joint: Joint, y: Matrix | None) -> Leader:
    assert y is not None, "the leader has the target"
    if p.penalty == "l1":
        return LassoLeader(_lasso(p, joint), y)
    return SmoothLeader(_squares(p, joint), y)


def _squares_owner(p: LeastSquaresColumns, joint: Joint, part: Part, place: int, leads: bool) -> Owner:
    del place
    if p.penalty == "l1":
        mean = float(part.y.mean()) if leads and p.fit_intercept and part.y is not None else None
        return LassoOwner(_lasso(p, joint), part.X, part.centre, mean)
    return SmoothOwner(_squares(p, joint), part.X, part.centre, leads=leads)


def line(p: Any, joint: Joint, W: Matrix, intercept: Matrix) -> dict[str, Any]:
    """A model with one line of coefficients, as rows split give it."""
    names = ((INTERCEPT,) if p.fit_intercept else ()) + joint.names
    coefficients = np.concatenate([intercept, W[0]]) if p.fit_intercept else W[0]
    return plain({"names": names, "coefficients": coefficients, "family": "gaussian", "link": "identity"})


def _check_squares(study: Study) -> None:
    p = study.read_parameters(LeastSquaresColumns)
    if not (p.alpha >= 0.0 and np.isfinite(p.alpha)):
        raise ParameterError(f"alpha={p.alpha!r} must be 0 or more", option="alpha")


LEAST_SQUARES = Kind(
    name="least-squares-columns",
    title="Least squares with columns split, by summed scores",
    analysis="regression",
    parameters=LeastSquaresColumns,
    sizes=_squares_sizes,
    leader=_squares_leader,
    owner=_squares_owner,
    made=lambda p: partial(line, p),
    opened=_SCORES,
    told=_SLOPES,
    usual=lambda p, d: 300 if p.penalty == "l1" else d,
    centred=lambda p: bool(p.fit_intercept),
    coefficients=lambda p, joint: len(joint.names) + p.fit_intercept,
    instead=_ENCRYPTED,
    free=lambda p: p.penalty == "none",
    check=_check_squares,
)


# ---- classifiers ----


def _problem(p: ClassifierColumns, joint: Joint) -> Problem:
    several = len(joint.classes) > 2
    softmax = several and p.loss == "logistic"
    penalty = 0.0 if p.C is None else 1.0
    return Problem(
        "softmax" if softmax else p.loss,
        joint.rows,
        len(joint.classes) if several and not softmax else 1,
        len(joint.classes) if softmax else 1,
        1.0 if p.C is None else p.C,
        penalty,
        p.fit_intercept,
        0.0 if p.loss == "logistic" else 1.0 / p.intercept_scaling**2,
        p.tol,
        p.max_iter,
    )


def _classifier_leader(p: ClassifierColumns, joint: Joint, y: Matrix | None) -> Leader:
    assert y is not None, "the leader has the target"
    return SmoothLeader(_problem(p, joint), y)


def _classifier_owner(p: ClassifierColumns, joint: Joint, part: Part, place: int, leads: bool) -> Owner:
    del place
    return SmoothOwner(_problem(p, joint), part.X, part.centre, leads=leads)


def _weights(p: ClassifierColumns, joint: Joint, W: Matrix, intercept: Matrix) -> dict[str, Any]:
    """A model with weights for every class, as rows split give it."""
    names = ((INTERCEPT,) if p.fit_intercept else ()) + joint.names
    coefficients = np.column_stack([intercept, W]) if p.fit_intercept else W
    return plain({"names": names, "classes": joint.classes, "coefficients": coefficients, "loss": p.loss})


def _check_classifier(study: Study) -> None:
    p = study.read_parameters(ClassifierColumns)
    if not (p.intercept_scaling > 0.0 and np.isfinite(p.intercept_scaling)):
        raise ParameterError(
            f"intercept_scaling={p.intercept_scaling!r} must be above 0", option="intercept_scaling"
        )
    if p.C is not None and not (p.C > 0 and np.isfinite(p.C)):
        raise ParameterError(f"C={p.C!r} must be above 0", option="C")
    if p.C is None and p.loss != "logistic":
        raise ParameterError("support vectors need C", option="C")


CLASSIFIER = Kind(
    name="classifier-columns",
    title="Linear classifier with columns split, by summed scores",
    analysis="classification",
    parameters=ClassifierColumns,
    sizes=lambda p, joint: SmoothSizes(_problem(p, joint)),
    leader=_classifier_leader,
    owner=_classifier_owner,
    made=lambda p: partial(_weights, p),
    opened=_SCORES,
    told=_SLOPES,
    usual=lambda p, d: d + (8 if p.loss == "hinge" else 0),
    # The intercept of support vectors is penalised, so its columns must stay where they are.
    centred=lambda p: bool(p.fit_intercept) and p.loss == "logistic",
    coefficients=lambda p, joint: (
        (len(joint.names) + p.fit_intercept) * (len(joint.classes) if len(joint.classes) > 2 else 1)
    ),
    instead=_NEITHER,
    free=lambda p: p.C is None,
    classifies=True,
    check=_check_classifier,
)


# ---- k-means ----


def _clusters(p: KMeansColumns, joint: Joint) -> Clusters:
    return Clusters(joint.rows, len(joint.names), p.n_clusters, p.init, p.seed, p.tol, p.max_iter)


def _clusters_owner(p: KMeansColumns, joint: Joint, part: Part, place: int, leads: bool) -> Owner:
    del leads
    start = sum(joint.widths[:place])
    if p.init is not None and len(p.init[0]) != len(joint.names):
        raise StudyError(
            f"init has centres of {len(p.init[0])} numbers for {len(joint.names)} columns",
            hint="one number for each column, islands in the study's order",
            path=("parameters", "init"),
        )
    return LloydOwner(_clusters(p, joint), part.X, part.centre, slice(start, start + joint.widths[place]))


def _centres(p: KMeansColumns, joint: Joint, W: Matrix, intercept: Matrix) -> dict[str, Any]:
    del p, intercept
    return plain({"names": joint.names, "centres": W})


def check_clusters(study: Study) -> None:
    """As with rows split."""
    p = study.read_parameters(KMeansColumns)
    if p.n_clusters < 1:
        raise ParameterError(f"n_clusters={p.n_clusters} must be 1 or more", option="n_clusters")
    if p.init is None:
        return
    widths = {len(row) for row in p.init}
    if len(p.init) != p.n_clusters or len(widths) != 1 or not np.isfinite(np.array(p.init)).all():
        raise StudyError(
            f"init must hold {p.n_clusters} centres of finite numbers, all of one length",
            path=("parameters", "init"),
        )


KMEANS = Kind(
    name="kmeans-columns",
    title="k-means with columns split, by summed distances",
    analysis="clusters",
    parameters=KMeansColumns,
    sizes=lambda p, joint: lloyd_sizes(_clusters(p, joint)),
    leader=lambda p, joint, _: LloydLeader(_clusters(p, joint)),
    owner=_clusters_owner,
    made=lambda p: partial(_centres, p),
    opened="the summed distance of every row to every centre, and how far the centres moved",
    told="the cluster of every row",
    usual=lambda _, __: 12,
    centred=lambda _: True,
    coefficients=lambda p, joint: max(int(p.n_clusters), len(joint.names)),
    instead=_NEITHER,
    needs_target=False,
    offsets=False,
    check=check_clusters,
)

LEAST_SQUARES_PROTOCOL = protocol(LEAST_SQUARES)
CLASSIFIER_PROTOCOL = protocol(CLASSIFIER)
KMEANS_PROTOCOL = protocol(KMEANS)
