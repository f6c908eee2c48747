"""What is refreshed, turned into shares or opened in Algorithm 1 is as narrow as the masks are made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.support.paper_runs import agreed_intervals, run_clear, table
from tests.support.slot_programs import LENGTH, tables
from tests.support.slot_runs import encrypted, provider

from atoll.crypto import slots
from atoll.errors import RangeOverflow
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm
from atoll.secret_matrices.slots.clear import Clear
from atoll.secret_matrices.slots.machine import Matrix, Slots, Values

MAGNITUDE = 10
"""Bits before the point; masks of 112 bits are 64 wider than that and 38 bits after it."""
PAPER = Algorithm(p=4, alpha=1, w=1)


class Widths:
    """The largest number in any slot, by the verb that masks it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most: dict[str, float] = {}
        for name in ("_refresh", "_opened", "_to_shares"):
            monkeypatch.setattr(Clear, name, self._noting(name, getattr(Clear, name)))

    def _noting(self, name: str, verb: Any) -> Any:
        async def noting(machine: Clear, rows: Matrix, *rest: Any) -> Any:
            held: Sequence[Values] = [x.held for x in rows if x.held is not None]
            found = max((float(np.abs(x).max()) for x in held), default=0.0)
            self.most[name] = max(self.most.get(name, 0.0), found)
            return await verb(machine, rows, *rest)

        return noting


@pytest.mark.parametrize(("method", "qr"), [("precomp", "qr"), ("seq", "qr"), ("seq", "dqr")])
def test_all_that_is_masked_in_a_run_is_below_its_bound(
    monkeypatch: pytest.MonkeyPatch, method: Any, qr: Any
) -> None:
    parts = np.array_split(table(), 3)
    told = agreed_intervals(parts, 1, PAPER, method, qr)
    seen = Widths(monkeypatch)
    ran = run_clear(parts, 1, PAPER, told, method=method, qr=qr)
    assert abs(ran.tau) < 1e-2
    assert set(seen.most) == {"_refresh", "_opened"}
    assert all(0 < most < 2.0**MAGNITUDE for most in seen.most.values()), seen.most


def test_the_bound_is_seen_to_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals that do not fit: what is refreshed then is wider, and the look sees it."""
    parts = np.array_split(table(), 3)
    told = agreed_intervals(parts, 1, PAPER)
    wrong = {place: (low / 2**14, high / 2**14) for place, (low, high) in told.of.items()}
    seen = Widths(monkeypatch)
    run_clear(parts, 1, PAPER, told._replace(of=wrong))
    assert not seen.most["_refresh"] < 2.0**MAGNITUDE


def test_masks_and_bounds_are_those() -> None:
    for name in ("paper-14", "test-slots-10"):
        chosen = slots.find(name, for_tests=True)
        assert chosen.mask_bits == 38 + MAGNITUDE + 64
        assert (chosen.scale_bits, chosen.magnitude_bits) == (38, MAGNITUDE)


@pytest.mark.parametrize("own", [False, True])
def test_a_number_wider_than_an_opening_hides_is_not_read(own: bool) -> None:
    async def program(m: Slots, rows: Any) -> Any:
        (x,) = await m.broadcast(await m.encrypted_total(None if rows is None else [rows[0]], 1))
        if own:
            x = m.own_inner([(x, None if rows is None else rows[0])])
        wide = m.scaled(m.scaled(x, 1000), 1000)
        if own:
            return await m.opened_own([wide], [LENGTH])
        return await m.opened([wide], [LENGTH], frozenset({provider(0)}))

    with pytest.raises(RangeOverflow, match="a value is wider than it can be"):
        encrypted(program, tables())
