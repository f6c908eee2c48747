"""What islands and the leading role tell each other, by the places of terms (:mod:`atoll.data.prepared`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.network import Compared
from atoll.protocols.fields import AgreedFields, Fields


class Wanted(Message, frozen=True):
    """Leader -> island: the terms whose joint mean is due, and those that may be constant."""

    fill: tuple[int, ...]
    flat: tuple[int, ...]


class Means(Message, frozen=True):
    """Leader -> island: the joint means of these terms, in this order: first to fill, then flat."""

    values: np.ndarray[Any, Any]


class Flat(Message, frozen=True):
    """Leader -> island: the terms that are constant, or empty, on all islands together."""

    terms: tuple[int, ...]


class PreparedTold(Message, frozen=True):
    """Leader -> whoever the study tells how tables were prepared."""

    columns: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    fill: dict[str, float]
    flat: tuple[str, ...]


MESSAGES = (Fields, AgreedFields, Wanted, Means, Flat, PreparedTold, Compared)
