"""The public sketch Pi, and a provider's own numbers: what goes into Algorithm 1 in the clear."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.data.island import Matrix
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters
from atoll.study.model import Study


class CountSketch(NamedTuple):
    """rho x n with one entry, -1 or 1, in every column: the bucket of each row of the table, and its sign."""

    buckets: npt.NDArray[np.int64]
    signs: Matrix
    rho: int

    def times(self, rows: Matrix, start: int) -> Matrix:
        """Pi_i A_i, of rows that begin at ``start`` of the joint table."""
        own = slice(start, start + len(rows))
        out = np.zeros((self.rho, rows.shape[1]))
        np.add.at(out, self.buckets[own], self.signs[own, None] * rows)
        out *= self.unit
        return out

    def centred(self, rows: Matrix, start: int) -> Matrix:
        """Pi_i A_i - Pi 1 o_i: with everybody's, the sketch of rows about their mean.

        The second Pi is the whole one: o_i is a party's part of the mean of all rows."""
        n = len(self.signs)
        out = self.times(rows, start)
        out -= np.outer(self.ones(), rows.sum(axis=0) / n)
        return out

    def ones(self) -> Matrix:
        """Pi 1: the sums of its rows."""
        return (
            np.bincount(self.buckets, weights=self.signs, minlength=self.rho).astype(np.float64) * self.unit
        )

    @property
    def unit(self) -> float:
        """A row adds up n / rho numbers: divided by the root of that, it is as long as one of them."""
        return float(np.sqrt(self.rho / len(self.signs)))


def sketch_of(seed: bytes, rho: int, n: int) -> CountSketch:
    """The sketch that everybody draws from a public seed."""
    words = randomness.expand_words(seed, 2 * n, "atoll/sfpca-paper/sketch")
    signs = 1.0 - 2.0 * (words[n:] & np.uint64(1)).astype(np.float64)
    return CountSketch((words[:n] % np.uint64(rho)).astype(np.int64), signs, rho)


def public_seed(study: Study) -> bytes:
    """The study's seed or, without one, its digest: public in either case."""
    seed = study.read_parameters(PaperParameters).paper.seed
    said = study.digest if seed is None else f"seed {seed}"
    return hashlib.sha256(said.encode()).digest()


_MOST_SPREAD = 1024
"""Columns beyond which a rotation takes long, and no component lies along one of them."""


def spreading(seed: bytes, m: int) -> Matrix | None:
    """A public rotation of the columns, after which no component lies along one of them.

    A reflection takes a row to a coordinate axis, and needs the sign of what it has there already: from
    which side it comes matters only if it lies along the axis. None where it stays as it is.
    """
    if m > _MOST_SPREAD:
        return None
    words = randomness.expand_words(seed, 2 * m * m, "atoll/sfpca-paper/spreading")
    u = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    normal = np.sqrt(-2 * np.log1p(-u[: m * m])) * np.cos(2 * np.pi * u[m * m :])
    Q, R = np.linalg.qr(normal.reshape(m, m))
    return np.asarray(Q * np.sign(np.diag(R)), np.float64)
