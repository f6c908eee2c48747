"""Noise in shares of owners around a secure sum: who is counted on, what the sum must withstand, in words.

What every private release shares, whatever is released: of n owners, c may pool their shares with whoever
sees the sums, t may be missing, and what is left still carries the stated epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll import secure_sums
from atoll.errors import ParameterError, StudyError
from atoll.privacy.accountant import Spent, in_words
from atoll.privacy.mechanisms import Cost, Crowd
from atoll.privacy.sensitivity import Neighbours
from atoll.protocols.private_options import Privacy
from atoll.study.model import Study


def crowd_of(study: Study, asked: Privacy, owners: int) -> Crowd:
    """Who adds noise, and how many of them are not counted on."""
    dropouts = secure_sums.may_leave(study)
    if asked.colluders < 1:
        raise ParameterError(
            f"colluders={asked.colluders}: owners see the result, so at least 1 must be assumed to use "
            "its own noise share against the others",
            hint="colluders=1 or more",
            option="colluders",
        )
    # Local noise is noise for the case that all others collude: every owner adds the whole of it.
    return Crowd(owners, owners - 1 - dropouts if asked.noise == "local" else asked.colluders, dropouts)


def check_sum(study: Study, crowd: Crowd, *, adder_apart: bool = False) -> None:
    """Refuse a secure sum that shows more than sums to the coalition that the noise is made for."""
    _check_coalition(study, crowd, adder_apart=adder_apart)
    inexact = secure_sums.chosen(study).inexact
    if inexact is not None:
        raise StudyError(inexact.words, hint=inexact.hint, path=("sum", inexact.option))


def _check_coalition(study: Study, crowd: Crowd, *, adder_apart: bool) -> None:
    """A coalition that the noise is made for must see sums only: a single input carries one share of it."""
    method = secure_sums.chosen(study)
    most = method.withstands(crowd.owners, secure_sums.options(study), adder_apart=adder_apart)
    if crowd.colluders > most and crowd.honest > 1:
        raise StudyError(
            f"the noise is for {crowd.colluders} colluding owner(s), the secure sum withstands {most}: with "
            "whoever opens the sum they would see single inputs, each with only a part of the noise",
            hint=f"secure_sum = {secure_sums.listed(_withstanding(crowd))}, fewer colluders, or "
            "noise = 'local'",
            path=("study", "secure_sum"),
        )


def _withstanding(crowd: Crowd) -> list[str]:
    """The secure sums that the crowd's colluders do not open, with the options they have by default."""
    return [
        name
        for name, method in secure_sums.METHODS.items()
        if method.withstands(crowd.owners, method.options_type(), adder_apart=False) >= crowd.colluders
    ]


def promise(costs: Sequence[Cost], delta: float | None, neighbours: Neighbours) -> list[str]:
    """What releases of these costs mean for one row, for the person who signs."""
    epsilon = Spent.of(costs).epsilon(delta)
    protected = (
        "whether any one row is in the data at all (neighbours: add-remove)"
        if neighbours == "add-remove"
        else "the content of any one row, not the number of rows (neighbours: replace)"
    )
    kind = f", delta {delta:g}" if delta is not None else " (pure)"
    return [
        f"epsilon {epsilon:.4g}{kind}: {in_words(epsilon, delta, neighbours)}",
        f"protected: {protected}",
    ]


def noise_words(asked: Privacy, crowd: Crowd) -> str:
    """Whose noise it is, and how much more than a trusted curator's."""
    missing = f" and {crowd.dropouts} missing" if crowd.dropouts else ""
    return (
        f"noise: {_kind(asked)}; it is enough even with {crowd.colluders} of {crowd.owners} "
        f"owners colluding (using what they know of it){missing}, and its variance is "
        f"{crowd.variance_factor():.3g} times what a single trusted party would need"
    )


def _kind(asked: Privacy) -> str:
    kind = "discrete Laplace" if asked.delta is None else "discrete Gaussian"
    if asked.noise == "local":
        return f"{kind}, the whole of it from every owner"
    return f"{kind}, a share from every owner, so that nobody knows the total"
