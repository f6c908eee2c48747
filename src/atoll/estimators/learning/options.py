"""The options of learning estimators, each declared once.

scikit-learn reads an estimator's options from the signature of its ``__init__``; here that signature is made
from these tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

FIELDS: Mapping[str, Any] = {"columns": None, "categorical": (), "missing": "refuse"}
"""Which columns a model uses, those of them that hold categories, and what happens to missing values."""

SUMS: Mapping[str, Any] = {"secure_sum": "shares", "key": "collective", "mix": None, "engine": None}
"""How sums are hidden, and where roles run."""

SPLIT: Mapping[str, Any] = {
    "partition": "horizontal",
    "y_holder": None,
    "accept_scores": False,
    "accept_two_party": False,
    "share_model": False,
}
"""``partition`` "vertical": islands hold columns. Then ``y_holder``: the island that has the target, else all
have it; ``accept_scores``: summed scores may be opened; ``accept_two_party``: also between two islands;
``share_model``: the model is revealed at the end, else each island has its own part."""

CONSENT = ("accept_scores", "accept_two_party")


def taking(leading: Mapping[str, Any], *others: Mapping[str, Any]) -> Callable[..., None]:
    """An ``__init__`` that stores its options as they are; ``leading`` ones may be given by their place."""
    kinds = inspect.Parameter
    parameters = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    parameters += [kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=value) for n, value in leading.items()]
    named = {name: value for table in others for name, value in table.items()}
    parameters += [kinds(name, kinds.KEYWORD_ONLY, default=value) for name, value in named.items()]
    signature = inspect.Signature(parameters)

    def store(self: Any, *args: Any, **options: Any) -> None:
        given = signature.bind(self, *args, **options)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if name != "self":
                setattr(self, name, value)

    store.__signature__ = signature  # type: ignore[attr-defined]
    store.__name__ = "__init__"
    return store
