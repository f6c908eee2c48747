"""The messages of the paper variant's roles; the machines that compute for them have their own."""

from __future__ import annotations

from atoll.codec import Message
from atoll.protocols.pca.sfpca.messages import DataRange, Finished, Names, RowCount, RowCounts
from atoll.secret_matrices.messages import DealtShare, ReleasedPoint
from atoll.secret_matrices.slots import messages as machine
from atoll.secret_numbers import messages as numbers


class Estimates(Message, frozen=True):
    """The simulating provider -> everybody: the power of two that data are multiplied by so that the largest
    variance is about one, the power of two of each component's variance, and the powers of two between which
    the argument of each approximation lies, by place."""

    scale: int
    variances: tuple[int, ...]
    stretches: dict[str, tuple[int, ...]]
    """By place: the powers of two that rows are multiplied by before they are factorised."""
    places: tuple[str, ...]
    sides: tuple[int, ...]
    """Whether values there are taken to be above zero, below it (-1), or on both sides (0)."""
    lows: tuple[int, ...]
    highs: tuple[int, ...]


class VarianceUnit(Message, frozen=True):
    """Coordinator -> consumer: the factor of opened variances, and how many there are beside them."""

    value: float
    further: int


MESSAGES = (
    RowCount,
    RowCounts,
    DataRange,
    Names,
    Estimates,
    VarianceUnit,
    DealtShare,
    ReleasedPoint,
    Finished,
    *machine.MESSAGES,
    *numbers.MESSAGES,
)
