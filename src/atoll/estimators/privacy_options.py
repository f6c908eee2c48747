"""What estimators with an epsilon share: their options as study parameters, and the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from atoll.data.island import Island
from atoll.errors import ParameterError
from atoll.estimators.constraints import ANY, FLAG, Constraint, Constraints, is_real, is_whole
from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import Account
from atoll.privacy.dp_moments import CentreChoice
from atoll.privacy.ledger import Ledger, site_ledger
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.study.model import Study

PRIVACY_OPTIONS: Constraints = {
    "epsilon": ANY,
    "delta": ANY,
    "row_norm": ANY,
    "rows": ANY,
    "neighbours": ANY,
    "noise": ANY,
    "colluders": ANY,
    "assume_centered": FLAG,
    "centre": Constraint(
        lambda value: value in get_args(CentreChoice), "{name}={value!r} must be 'mean' or 'pairs'"
    ),
    "ledger": ANY,
}
"""The options of a differentially private release."""

CUT_ROWS = "cut rows"
_PAPER_NOISE = ("gaussian", "laplace", "wishart")


def privacy_parameters(estimator: Any, *, bounded: bool = False) -> dict[str, Any]:
    """An estimator's privacy options, as a study's parameters hold them.

    ``bounded``: the range of the rows may be public in another way than by ``row_norm``.
    """
    # Differences of length one need no bound.
    if estimator.row_norm is None and not bounded and estimator.centre == "mean":
        raise ParameterError(
            "a private PCA needs row_norm, a public bound on the Euclidean norm of a row",
            hint="set it from what is known of the columns, never from the rows; longer rows are cut to it",
        )
    parameters: dict[str, Any] = {
        "epsilon": number_option(estimator, "epsilon"),
        "delta": number_option(estimator, "delta"),
        "row_norm": number_option(estimator, "row_norm"),
        "rows": estimator.rows,
        "neighbours": estimator.neighbours,
        "colluders": whole_colluders(estimator),
        "assume_centered": bool(estimator.assume_centered),
    }
    return parameters | _noise(estimator)


def number_option(estimator: Any, name: str) -> float | None:
    """An option that is a number, or left out: "1" and True are neither."""
    value = getattr(estimator, name)
    if value is not None and not is_real(value):
        raise ParameterError(f"{name}={value!r} must be a number", hint="without quotes", option=name)
    return None if value is None else float(value)


def whole_colluders(estimator: Any) -> int:
    """How many owners the noise is made for."""
    if not is_whole(estimator.colluders):
        raise ParameterError(
            f"colluders={estimator.colluders!r} must be a whole number",
            hint="colluders=1",
            option="colluders",
        )
    return int(estimator.colluders)


def pair_parameters(estimator: Any, tables: Mapping[str, Island]) -> dict[str, Any]:
    """How rows are centred; padded where the islands declare capacities and a row's presence is hidden."""
    if estimator.centre != "pairs":
        return {}
    declared = [name for name, table in tables.items() if table.capacity is not None]
    if estimator.neighbours != "add-remove" or not declared:
        return {"centre": "pairs"}
    missing = [name for name in tables if name not in declared]
    if missing:
        raise ParameterError(
            f"{', '.join(declared)} declares a capacity, {', '.join(missing)} does not: the noise is for "
            "islands that all do, or for none",
            hint="Island.from_array(X, capacity=...) for every island",
        )
    return {"centre": "pairs", "padded": True}


def variances_of(estimator: Any) -> str:
    """Of which rows the explained variances are."""
    if estimator.centre == "pairs":
        return "unit differences of rows"
    return "normalised rows" if estimator.rows == "normalise" else CUT_ROWS


def _noise(estimator: Any) -> dict[str, Any]:
    if estimator.calibration == "paper":
        if estimator.noise == "distributed":  # the default, which the paper does not have
            return {}
        if estimator.noise not in _PAPER_NOISE:
            raise ParameterError(
                f"noise={estimator.noise!r} is not a mechanism of calibration='paper'",
                hint=f"one of {', '.join(map(repr, _PAPER_NOISE))}",
            )
        return {"noise": estimator.noise}
    if estimator.noise == "central":
        raise ParameterError(
            "noise='central' would let one party know the noise and take it away from published components",
            hint="noise='distributed': every owner adds a share",
        )
    if estimator.noise not in ("distributed", "local"):
        raise ParameterError(
            f"noise={estimator.noise!r} is not possible here",
            hint="'distributed', or 'local': every owner adds the whole noise",
        )
    return {"noise": estimator.noise}


@contextmanager
def booked(
    tables: Mapping[str, Island], ledger: Any, *, named: bool, brought: Mapping[str, Own] | None = None
) -> Iterator[dict[str, Own]]:
    """Every island with its ledger: its own, the named one, or none; then nothing is booked.

    ``brought``: what owners handed in beside their islands.
    ``named``: whether the caller gave the islands names, which then stand for the data sets' identities.
    """
    book = _opened(ledger)
    try:
        own = {}
        for name, table in tables.items():
            mine = (brought or {}).get(name, Own())
            own[name] = replace(mine, island=table, ledger=mine.ledger or book)
            if table.identity is None and own[name].ledger is not None and not named:
                raise ParameterError(
                    f"{name} does not say which data set it is, and a ledger books by data set",
                    hint="fit({'st-mary-icu': X, ...}), or Island.from_array(X, identity='st-mary-icu')",
                )
            table.identity = table.identity or name
        yield own
    finally:
        if book is not None and book is not ledger:
            book.close()


def _opened(ledger: Any) -> Ledger | None:
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if ledger is True:
        return Ledger(site_ledger())
    if isinstance(ledger, str | Path):
        return Ledger(ledger)
    raise ParameterError(
        f"ledger must be a path, a Ledger, or True for the site's, got a {type(ledger).__name__}",
        hint="ledger=True, after atoll ledger init",
    )


def accounts(study: Study, own: Mapping[str, Own]) -> dict[str, Account]:
    """Where each data set stands after a fit, by island; without a ledger, what this fit alone spent."""
    return {
        name: _unbooked(study, name)
        if mine.ledger is None
        else mine.ledger.account(mine.table.identity or name)
        for name, mine in own.items()
    }


def _unbooked(study: Study, name: str) -> Account:
    terms = protocol_of(study.protocol).privacy(study)
    assert terms is not None
    spent = Spent.of(terms.costs)
    return Account(name, None, terms.neighbours, spent, spent.epsilon(terms.delta), terms.delta or 0.0, 1)
