"""The messages of SF-PCA's roles; the machines that compute for them have their own."""

from __future__ import annotations

from atoll.codec import Message
from atoll.secret_matrices import messages as machine


class RowCount(Message, frozen=True):
    """Provider -> coordinator: n_i, which is public."""

    n: int


class RowCounts(Message, frozen=True):
    """Coordinator -> provider, consumer: everybody's n_i, in the study's order."""

    n: tuple[int, ...]


class DataRange(Message, frozen=True):
    """Coordinator -> provider: 2^exponent, which no value exceeds; of all columns, or of each."""

    exponents: tuple[int, ...]


class Names(Message, frozen=True):
    """Coordinator -> consumer: the columns of the components, and the unit of the released offset."""

    columns: tuple[str, ...]
    named: bool
    offset_unit: float


class Certified(Message, frozen=True):
    """Coordinator -> consumer: the accuracy certificate."""

    recipe: str
    bound: float
    tau: float


class Finished(Message, frozen=True):
    """Provider, consumer -> coordinator: it waits for nobody any more."""


MESSAGES = (RowCount, RowCounts, DataRange, Names, Certified, Finished, *machine.MESSAGES)
