"""A provider alone that adds a number to its second halves: decryption shares hold keys times that number.

The total shows that sum under masks only. A number far wider than masks would show the keys, before the width
ends the run; so the coordinator looks at a total before any provider is shown it. A number as wide as a mask
would fit in what the bound on totals leaves free; so it leaves nothing free. Each is taken away here, and
then the keys are read: of two providers unnoticed, with results that are right.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_sfpca_ahead import Sent
from tests.attacks.test_sfpca_rushing import unpacked
from tests.attacks.test_variants_sfpca import constant
from tests.support.sfpca_runs import encrypted

from atoll.crypto import products as go
from atoll.errors import AtollError, RangeOverflow
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import roles
from atoll.secret_matrices.courses import Course
from atoll.secret_matrices.machine import Floats, Job

SIZE, LIAR = 6, "p1/provider"


async def three_products(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """The third power of a matrix, whole numbers of which each provider knows a part."""
    names = inputs.providers
    own = None
    if machine.me in names:
        own = np.random.default_rng(names.index(machine.me)).integers(-9, 9, size=(SIZE, SIZE))
    x = machine.private(None, own, (SIZE, SIZE), 0, 6)
    options: dict[str, Any] = {"fraction": 20, "bits": 20, "ahead": True}
    square = await machine.product((x, x), name="square", **options)
    cube = await machine.product((square, x), name="cube", **options)
    return await machine.released(cube, receivers)


def exact(members: int) -> Floats:
    x = sum(np.random.default_rng(i).integers(-9, 9, size=(SIZE, SIZE)) for i in range(members))
    return np.linalg.matrix_power(np.array(x), 3).astype(float)


def moved(body: Any, ring: go.Ring, number: int, polys: int) -> memoryview:
    """Transformed polynomials plus a number: two residues are thirteen bytes."""
    added, out = constant(number, ring, polys), bytearray()
    size, mask = ring.poly_size // ring.limbs, (1 << 52) - 1
    for at in range(0, len(body), size):
        q = ring.moduli[at // size % ring.limbs]
        for i in range(at, at + size, 13):
            x, y = (int.from_bytes(bytes(one[i : i + 13]), "little") for one in (body, added))
            low, high = ((x & mask) + (y & mask)) % q, ((x >> 52) + (y >> 52)) % q
            out += (low | high << 52).to_bytes(13, "little")
    return memoryview(bytes(out))


class Reading(roles.Provider):
    """Adds a number to its second halves, and reads the others' keys from totals."""

    wider = 0
    """Bits by which the number is wider than a mask."""
    found: dict[int, Any]
    secrets_of: dict[str, Any]
    _lies: Course | None = None

    async def set_up(self, *rest: Any) -> None:
        await super().set_up(*rest)
        Reading.secrets_of[self.me] = self.secrets

    def _with(self, body: Any, course: Course, sign: int = 1) -> memoryview:
        number = sign * (1 << (course.widths.clearing.mask_bits + Reading.wider))
        ring = course.ring
        return moved(body, ring, number % prod(ring.moduli), course.widths.layouts[0].out_polys)

    async def _send_second(self, course: Course) -> None:
        self._lies = course if self.me == LIAR else None
        await super()._send_second(course)
        self._lies = None

    async def _send(self, message: Any) -> None:
        if self._lies is not None:
            message = mm.SecondPart(message.step, self._with(message.body, self._lies))
        await super()._send(message)

    async def _give(self, course: Any, what: str, step: int, body: Any, *rest: Any) -> None:
        body = body if self._lies is None else self._with(body, self._lies)
        await super()._give(course, what, step, body, *rest)

    async def _refreshed(self, course: Course, halves: Any) -> Any:
        if self.me != LIAR:
            return await super()._refreshed(course, halves)
        clearing = course.widths.clearing
        Reading.found[course.step] = course, None
        own = self._with(halves[0], course, -1), halves[1]
        share = await super()._refreshed(course, own)
        total = await self._total(course)
        unit = 1 << (clearing.mask_bits + Reading.wider - clearing.truncate)
        digits = (go.to_ints(total.share) + go.to_ints(share) + unit // 2) // unit
        Reading.found[course.step] = course, digits
        # It takes what it read off its own share: results are right.
        return go.from_ints(go.to_ints(share) - digits * unit, share.shape[2])


def keys_of(course: Course, names: tuple[str, ...]) -> Any:
    """The coefficients of these providers' keys that are in the results."""
    ring, layout, clearing = course.ring, course.widths.layouts[0], course.widths.clearing
    width, found = clearing.mask_bits, 0
    second = memoryview(constant(1 << width, ring, layout.out_polys))
    for name in names:
        secret = Reading.secrets_of[name][ring]
        masked, share = secret.refresh(second, layout, clearing, b"x" * 32, b"")
        values = np.array(unpacked(ring, masked, SIZE * SIZE), dtype=object).reshape(SIZE, SIZE)
        values = np.where(values > prod(ring.moduli) // 2, values - prod(ring.moduli), values)
        found = found + ((values + (go.to_ints(share) << clearing.truncate) + (1 << (width - 1))) >> width)
    return found


def run(members: int, wider: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Sent]:
    for name, value in (("wider", wider), ("found", {}), ("secrets_of", {})):
        monkeypatch.setattr(Reading, name, value, raising=False)
    monkeypatch.setattr(roles, "Provider", Reading)
    tap = Sent()
    try:
        return encrypted(three_products, [np.eye(3)] * members, observer=tap)[0], tap
    except AtollError as error:
        return error, tap


def loose(ring: go.Ring, layout: go.Layout, body: Any, clearing: Any) -> Any:
    """What truncation leaves of a total, and a bound that leaves room: a power of two."""
    modulus, t = prod(ring.moduli), clearing.truncate
    values = np.array(unpacked(ring, body, layout.rows * layout.cols), dtype=object)
    values = np.where(values >= modulus // 2, values - modulus, values).reshape(layout.rows, layout.cols)
    if max(abs(int(v)) for v in values.flat) >> (clearing.mask_bits - 1 + clearing.parties.bit_length()):
        raise RangeOverflow("too wide")
    return go.from_ints((values + (1 << (t - 1))) >> t, clearing.share_words)


def test_with_room_in_the_bound_one_of_two_providers_would_read_the_other_ones_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No carrier, nothing is noticed, and results are right. This bound is not used."""
    monkeypatch.setattr(go, "clear_total", loose)
    monkeypatch.setattr(
        go.ProductSum, "clear", lambda self, c: loose(self.ring, self.layout, self.total(), c)
    )
    found, _ = run(2, 0, monkeypatch)
    assert not isinstance(found, AtollError), found
    np.testing.assert_allclose(found["p0/provider"], exact(2), atol=2.0**-8)
    assert len(Reading.found) == 2
    for course, digits in Reading.found.values():
        assert set(digits.flat) == {-1, 0, 1}
        assert (digits == keys_of(course, ("p0/provider",))).all()


@pytest.mark.parametrize(("members", "wider"), [(2, 0), (2, 8), (3, 0), (3, 8)])
def test_no_provider_is_shown_a_total_with_keys_in_it(
    members: int, wider: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, tap = run(members, wider, monkeypatch)
    assert isinstance(error, RangeOverflow)
    assert "wider than its masks" in str(error)
    assert len({m.step for m in tap.of(mm.MaskedShare)}) == 1
    assert not tap.of(mm.MaskedTotal)


class Hasty(roles.Coordinator):
    """Sends totals before it looks at them."""

    async def _add_shares(self, course: Any, total: Any) -> bytes:
        blind = await super()._add_shares(course, total)
        message = mm.MaskedTotal(course.step, total.total(), blind)
        await self.net.broadcast(self._members(self._told(course)), message)
        return blind


def test_a_coordinator_that_sends_totals_first_would_show_a_provider_the_sum_of_all_other_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run ends, but the provider has what it wanted."""
    monkeypatch.setattr(roles, "Coordinator", Hasty)
    error, tap = run(3, 8, monkeypatch)
    assert isinstance(error, RangeOverflow)
    ((course, _),) = Reading.found.values()
    total = next(m for to, _, m in tap.seen if isinstance(m, mm.MaskedTotal) and str(to) == LIAR)
    modulus, width = prod(course.ring.moduli), course.widths.clearing.mask_bits + 8
    values = np.array(unpacked(course.ring, total.body, SIZE * SIZE), dtype=object).reshape(SIZE, SIZE)
    values = np.where(values > modulus // 2, values - modulus, values)
    digits = (values + (1 << (width - 1))) >> width
    assert (digits == keys_of(course, ("p0/provider", "p2/provider"))).all()


async def two_in_one_round(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    own = [[1]] if machine.me in inputs.providers else None
    x, y = (machine.private(None, own, (1, 1), 0, 4) for _ in range(2))
    jobs = [Job(((x, y),), 0, 12, name, ahead=True) for name in ("one", "other")]
    made = await machine.products(jobs)
    return await machine.released(machine.hstack(made), receivers)


def test_nobody_is_shown_a_total_while_it_owes_a_share_of_the_same_round() -> None:
    """Of products with one left side: what the first total says could be taken off the second share."""
    tap = Sent()
    found = encrypted(two_in_one_round, [np.eye(3)] * 3, observer=tap)[0]
    np.testing.assert_allclose(found["p1/provider"], [[9, 9]])
    kinds = [type(m) for _, _, m in tap.seen if isinstance(m, mm.MaskedShare | mm.MaskedTotal)]
    assert kinds == [mm.MaskedShare] * 6 + [mm.MaskedTotal] * 6
