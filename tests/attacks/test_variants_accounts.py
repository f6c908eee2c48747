"""Attacks on what providers compare, taken as a whole: numbers that only look like the sum, masked totals
that come twice, sums that come again, at another's place or not at all, and providers that help.

Written by somebody who did not write the checks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.test_sfpca_coordinator import honest, run
from tests.examples import sfpca_columns

from atoll.crypto.hazmat import product as go
from atoll.errors import MessageError
from atoll.protocols.sfpca import messages as m
from atoll.protocols.sfpca import openings, parties
from atoll.runtime.execute import run_study

MERSENNE = (2**127 - 1) * (2**61 - 1)
"""What fingerprints of opened numbers were, or might be, taken modulo: everybody knows these primes."""


class Multiples(parties.Coordinator):
    """Adds multiples of well-known primes to the opened spectrum, so that the last component comes first."""

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        if x.shape == (1, 1):
            return await super().opened(x, smudge_bits=smudge_bits)
        step, upper = self.next_step(), np.triu_indices(3)
        arrived = await self.net.gather(m.OpenedShare, self.providers)
        words = openings.added_up([openings.share_words(arrived[p], step, x) for p in self.providers])
        Z = np.zeros((3, 3))
        Z[upper] = openings.floats(words, x.fraction)[:, 0]
        U = np.linalg.eigh(Z + np.triu(Z, 1).T)[1]
        wanted = (U * [3.0, 2.0, 1.0]) @ U.T
        added = [MERSENNE * round(v * 2**30) for v in wanted[upper]]
        values = go.to_ints(words) + np.array(added, dtype=object)[:, None]
        words = go.from_ints(values, go.MAX_WORDS)
        await self.net.broadcast(self.providers, m.OpenedMatrix(step, words))
        return openings.floats(words, x.fraction)


def test_a_spectrum_that_is_off_by_multiples_of_a_known_prime_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fixed modulus it was released in any order that the coordinator liked, the last one first."""
    error, tap = run(honest, monkeypatch, Multiples)
    assert isinstance(error, MessageError)
    assert "not that of the providers' parts" in str(error)
    assert tap.count(m.ReleasedShare) == 0


def plus(body: bytes, ring: go.Ring, entries: int, place: int, added: int) -> bytes:
    """Packed residues of which one stands for a number that is so much larger."""
    size, out = (entries * 52 + 7) // 8, b""
    for limb, q in enumerate(ring.moduli[: ring.limbs]):
        whole = int.from_bytes(body[limb * size : (limb + 1) * size], "little")
        at = 52 * place
        old = (whole >> at) & (2**52 - 1)
        out += (whole + (((old + added) % q - old) << at)).to_bytes(size, "little")
    return out


class Twice(parties.Coordinator):
    """Sends the carrier a wrong masked total, and the right one while it waits for the next."""

    changed = 0

    async def _multiply_all(self, courses: Any) -> Any:
        if len(courses) < 2 or Twice.changed:
            return await super()._multiply_all(courses)
        Twice.changed = 1
        sums = [(course, await self._added_products(course)) for course in courses]
        shares, sent = {}, []
        for course, total in sums:
            members = self._members(course.group)
            await self._fold(m.MaskedShare, members, total.add_share, course.step)
            sent.append((members[0], m.MaskedTotal(course.step, bytes(total.total()))))
            shares[course.step] = total.clear(course.plan.clearing)
        course, (carrier, right) = courses[0], sent[0]
        ring, y, clearing = course.plan.ring, course.plan.layouts[0], course.plan.clearing
        # A tenth of the range squared, at the place of the first two columns: the trace stays as it is.
        wrong = plus(right.body, ring, y.rows * y.cols, 1, (1 << clearing.value_bits) // 10)
        shares[course.step] = go.clear_total(ring, y, wrong, clearing)
        for to, message in [(carrier, m.MaskedTotal(course.step, wrong)), *sent]:
            await self.net.send(to, message)
        return shares


def test_a_masked_total_does_not_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one was computed with, the second one compared: the covariance was off by what was added."""
    monkeypatch.setattr(Twice, "changed", 0)
    monkeypatch.setattr(parties, "Coordinator", Twice)
    example = sfpca_columns(bounds=64.0)
    with pytest.raises(MessageError, match="twice"):
        run_study(example.study, example.islands)
