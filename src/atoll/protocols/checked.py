"""What can be checked of numbers that another role sends: kind, shape, size, and how they must fit together.

Whether a server's components are those of the joint table nobody else can see; that they are orthonormal
and as many as the study asks for, everybody can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll.errors import MessageError
from atoll.study.address import Address

MAX_ROWS = 1 << 48
"""More rows than any island has: sums of counts stay exact in a double."""

_TOLERANCE = 1e-6
"""Of orthonormality and order: far above rounding, far below what would tell of a row."""


def refuse(sender: Address, what: str) -> MessageError:
    return MessageError(f"{sender} sent {what}", hint="ask it why, or start a new run")


def check_floats(values: Any, shape: tuple[int, ...], what: str, sender: Address) -> None:
    """Finite doubles of this shape."""
    if values.dtype != np.float64 or values.shape != shape:
        due = " x ".join(map(str, shape))
        raise refuse(sender, f"{what} of shape {values.shape} ({values.dtype}) where {due} numbers were due")
    if not np.isfinite(values).all():
        raise refuse(sender, f"{what} that holds missing or infinite values")


def check_number(value: float, what: str, sender: Address, *, least: float = -np.inf) -> None:
    """One finite number, no smaller than this."""
    if not (np.isfinite(value) and value >= least):
        raise refuse(sender, f"{what} that is not finite or is below {least:g}")


def check_components(components: Any, k: int | float | None, d: int, sender: Address) -> None:
    """Orthonormal rows, as many as the study asks for."""
    rows = k if isinstance(k, int) else len(components) if components.ndim == 2 else 0
    check_floats(components, (rows, d), "components", sender)
    if not 1 <= rows <= d:
        raise refuse(sender, f"{rows} components of {d} columns")
    if np.abs(components @ components.T - np.eye(rows)).max() > _TOLERANCE:
        raise refuse(sender, "components that are not orthonormal")


def check_scale(scale: Any, d: int, sender: Address) -> None:
    """A positive divisor for every column."""
    check_floats(scale, (d,), "divisors", sender)
    if not (scale > 0).all():
        raise refuse(sender, "divisors that are not all positive")


def check_variances(explained: Any, total: float, rest: float, sender: Address) -> None:
    """Falling, not negative, and no more than the total."""
    check_floats(explained, (len(explained),), "explained variances", sender)
    check_number(total, "a total variance", sender, least=0.0)
    check_number(rest, "a noise variance", sender, least=0.0)
    slack = _TOLERANCE * max(total, float(np.abs(explained).max(initial=0.0)))
    if (explained < 0).any() or (np.diff(explained) > slack).any() or explained.sum() > total + slack:
        raise refuse(sender, "explained variances that do not fall, or exceed the total")


def check_islands(islands: Sequence[str], among: Sequence[Address], least: int, sender: Address) -> None:
    """Some of these parties, none twice, at least so many."""
    known = {address.party for address in among}
    strange = [name for name in islands if name not in known]
    if strange or len(set(islands)) < len(islands) or len(islands) < least:
        said = (
            f"which names {strange[0]!r}" if strange else f"of {len(islands)}, some of them twice or too few"
        )
        raise refuse(sender, f"a list of islands {said}")


def check_counts(
    counts: Sequence[int], place: int, own: int, islands: Sequence[Address], teller: Address
) -> None:
    """Everybody's number of rows, with this island's own as it told it."""
    if len(counts) != len(islands):
        raise refuse(teller, f"{len(counts)} numbers of rows for {len(islands)} islands")
    if counts[place] != own:
        raise refuse(
            teller, f"{counts[place]} as the number of rows of {islands[place].party}, which has {own}"
        )
    wrong = [i for i, n in enumerate(counts) if not 0 <= n < MAX_ROWS]
    if wrong:
        raise refuse(teller, f"{counts[wrong[0]]} as the number of rows of {islands[wrong[0]].party}")
