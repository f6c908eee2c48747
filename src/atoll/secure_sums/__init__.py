"""Secure sums: many ways to add vectors so that only the total is seen."""

from __future__ import annotations

from atoll.errors import StudyError
from atoll.network import Address, Network, Record
from atoll.secure_sums.base import Cost, SecureSum, SumOptions, read_options
from atoll.secure_sums.masks import Masks
from atoll.secure_sums.shares import Shares
from atoll.study.model import Study

METHODS: dict[str, type[SecureSum]] = {"shares": Shares, "masks": Masks}

__all__ = ["METHODS", "Cost", "SecureSum", "SumOptions", "method", "read_options", "session"]


def method(name: str) -> type[SecureSum]:
    """The method called ``name``."""
    if name not in METHODS:
        raise StudyError(f"there is no secure sum called {name!r}", hint=f"one of {', '.join(METHODS)}")
    return METHODS[name]


def session(
    study: Study,
    net: Network,
    record: Record,
    *,
    contributors: tuple[Address, ...],
    receivers: tuple[Address, ...],
    name: str = "sum",
) -> SecureSum:
    """The study's secure sum between these participants, bound to the study's digest."""
    return method(study.secure_sum)(
        net,
        record,
        contributors=contributors,
        receivers=receivers,
        session=f"{study.digest}/{name}",
        options=study.sum_options,
    )
