"""PPPCA's parameters, and what a study may say with them. The baselines share them."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType, structs

from atoll.errors import StudyError
from atoll.protocols.pca.pppca import private
from atoll.protocols.private_options import PrivateParameters
from atoll.study.model import Study

ELLIPSE_ROWS: Final = 20
"""An island of fewer rows releases no ellipse, where the study says nothing else."""
LEAST_ELLIPSE_ROWS: Final = 10
"""What a study can say at least: ten rows along five components are 50 numbers, their ellipse 20."""


class PPPCAParameters(PrivateParameters, frozen=True):
    """``n_components``: a number, a share of the variance, or all; ``label``: a column that goes along
    with the projections; ``row_ids``: one that tells the rows apart there; ``columns``: the columns to use,
    where not all of them; ``accept_determined``: release what says the covariance
    (:mod:`atoll.protocols.pca.pppca.outputs`); with ``epsilon``: a differentially private release, as in
    :mod:`atoll.protocols.pca.private_release`; ``ellipse_rows``: islands of fewer rows refuse a study that
    releases ellipses (:mod:`atoll.protocols.pca.pppca.ellipses`)."""

    n_components: int | float | None = 2
    standardize: bool = False
    label: str | None = None
    row_ids: str | None = None
    columns: tuple[str, ...] | None = None
    accept_determined: bool = False
    ellipse_rows: int | UnsetType = UNSET
    """Left out where no ellipses are released, so that other studies keep their digests."""


def settle(study: Study) -> Study:
    """Say the smallest island that an ellipse is made of, where the study leaves it out."""
    p = study.read_parameters(PPPCAParameters)
    if not study.receivers("ellipses") or p.ellipse_rows is not UNSET:
        return study
    return structs.replace(study, parameters={**study.parameters, "ellipse_rows": ELLIPSE_ROWS})


def check(study: Study) -> None:
    """What the study's types cannot say."""
    check_parameters(study, study.read_parameters(PPPCAParameters))


def check_parameters(study: Study, p: PPPCAParameters) -> None:
    """The same, of parameters that may be more than PPPCA's."""
    check_columns(p)
    k = p.n_components
    if isinstance(k, bool) or (isinstance(k, int) and k < 1) or (isinstance(k, float) and not 0 < k < 1):
        raise StudyError(
            f"n_components={k!r} is not possible",
            hint="a whole number from 1, a share of the variance between 0 and 1, or none for all",
            path=("parameters", "n_components"),
        )
    _check_privacy(study, p)
    _check_ellipses(study, p)


def _check_ellipses(study: Study, p: PPPCAParameters) -> None:
    if p.ellipse_rows is UNSET:
        return
    path = ("parameters", "ellipse_rows")
    if not study.receivers("ellipses"):
        raise StudyError(
            "ellipse_rows is stated, and no ellipses are released",
            hint="leave it out, or name who gets them: [release] ellipses = [...]",
            path=path,
        )
    if p.ellipse_rows < LEAST_ELLIPSE_ROWS:
        raise StudyError(
            f"ellipse_rows={p.ellipse_rows} is too few: an ellipse of so few rows is nearly the rows",
            hint=f"at least {LEAST_ELLIPSE_ROWS}; {ELLIPSE_ROWS} where the study says nothing",
            path=path,
        )


def _check_privacy(study: Study, p: PPPCAParameters) -> None:
    if study.protocol == "pppca":
        if p.privacy is not None:
            private.check(study, p.privacy, p.standardize)
        return
    # The baselines, which share these parameters, have no noise and refuse no number of components.
    for name, stated in (
        ("epsilon", p.privacy is not None),
        ("accept_determined", p.accept_determined),
        ("row_ids", p.row_ids is not None),
    ):
        if stated:
            raise StudyError(
                f"{name} cannot be used with {study.protocol}",
                hint="use pppca with epsilon (and delta), or leave it out",
                path=("parameters", name),
            )


def check_columns(p: PPPCAParameters) -> None:
    """The columns a study names must be some, distinct, and not the label."""
    if p.row_ids is not None and p.row_ids == p.label:
        raise StudyError("row_ids and label cannot be the same column", path=("parameters", "row_ids"))
    if p.columns is None:
        return
    beside = {p.label, p.row_ids}
    if not p.columns or len(set(p.columns)) < len(p.columns) or beside & set(p.columns):
        raise StudyError(
            "columns must name at least one column, none twice, and neither the label nor the row ids",
            path=("parameters", "columns"),
        )
