"""Secure sums: many ways to add vectors so that only the total is seen.

- :mod:`base`: what a secure sum is, says about itself and costs
- :mod:`shares`: additive shares: every contributor cuts its vector into random parts
- :mod:`graph`: who is whose neighbour among many, and how many neighbours are enough
- :mod:`drawn_graph`: how all contributors draw a sparse graph together
- :mod:`masks`: masks that cancel in the total; :mod:`recoverable_masks`: some contributors may leave
- :mod:`encrypted`: what sums under the receiver's key share
- :mod:`paillier`: under Paillier's encryption; :mod:`lattice`: under lattice encryption
- :mod:`mix`: random segments that every contributor shuffles
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from atoll.errors import StudyError, one_of
from atoll.network import Network, Record
from atoll.registry import Registry
from atoll.secure_sums.base import Cost, Helper, SecureSum, SumOptions, read_options
from atoll.study.address import Address
from atoll.study.model import Study

METHODS: Registry[type[SecureSum]] = Registry(
    "atoll.secure_sums",
    "a secure sum",
    SecureSum,
    {
        "shares": "atoll.secure_sums.shares:Shares",
        "masks": "atoll.secure_sums.masks:Masks",
        "paillier": "atoll.secure_sums.paillier:Paillier",
        "lattice": "atoll.secure_sums.lattice:Lattice",
        "mix": "atoll.secure_sums.mix:Mix",
    },
)
"""Every method by name; packages add theirs as entry points of this group."""

__all__ = [
    "METHODS",
    "Cost",
    "Helper",
    "SecureSum",
    "SumOptions",
    "chosen",
    "expected",
    "helpers",
    "listed",
    "may_leave",
    "method",
    "options",
    "read_options",
    "session",
]


def method(name: str) -> type[SecureSum]:
    """The method called ``name``."""
    if name not in METHODS:
        raise StudyError(
            f"there is no secure sum called {name!r}",
            hint=one_of(name, METHODS.names()),
            path=("study", "secure_sum"),
        )
    return METHODS[name]


def chosen(study: Study) -> type[SecureSum]:
    """The study's method, in the form that its options ask for."""
    named = method(study.secure_sum)
    most = max(Counter(role for party in study.parties for role in party.roles).values())
    return named.chosen(options(study), most).helped(frozenset(helpers(study)))


def options(study: Study) -> Any:
    """The options of the study's method, as the method's own struct."""
    return study.read_sum_options(method(study.secure_sum).options_type)


def may_leave(study: Study) -> int:
    """How many contributors may leave during the first sum without spoiling it."""
    return method(study.secure_sum).may_leave(options(study))


def listed(names: Iterable[str]) -> str:
    """Names of methods for a hint: 'one', 'two' or 'three'."""
    quoted = [repr(name) for name in names]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def helpers(study: Study) -> dict[str, Address]:
    """The parties that the study names for roles which its secure sum brings."""
    return {role: study.the(role) for role in method(study.secure_sum).helpers if study.who(role)}


def session(
    study: Study,
    net: Network,
    record: Record,
    *,
    contributors: tuple[Address, ...],
    receivers: tuple[Address, ...],
    longest: int,
    adder: Address | None = None,
    name: str = "sum",
) -> SecureSum:
    """The study's secure sum between these participants, bound to the study's digest.

    ``adder``: who adds ciphertexts, in a method where not the receiver does; else the first contributor.
    """
    return chosen(study)(
        net,
        record,
        contributors=contributors,
        receivers=receivers,
        session=f"{study.digest}/{name}",
        longest=longest,
        adder=adder,
        options=study.sum_options,
        helpers=helpers(study),
    )


def between(
    net: Network,
    study: Study,
    record: Record,
    contributor: str,
    receiver: str,
    longest: int,
    name: str = "sum",
) -> SecureSum:
    """The same between all who play two roles."""
    return session(
        study,
        net,
        record,
        contributors=study.who(contributor),
        receivers=study.who(receiver),
        longest=longest,
        name=name,
    )


def expected(study: Study, contributors: int, lengths: list[int]) -> Cost:
    """What the study's secure sum costs for rounds of these lengths and one receiver."""
    form = chosen(study)
    return form.cost(contributors, 1, options(study), lengths)
