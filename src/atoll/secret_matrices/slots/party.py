"""What the machines of provider and coordinator have in common: local verbs, and the course of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from atoll.crypto import slots
from atoll.crypto.slots import Ciphertext, Keys
from atoll.network import Network, Record
from atoll.randomness import fresh_seed
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.slots.later import Later, computed
from atoll.secret_matrices.slots.levelled import Levelled, whole
from atoll.secret_matrices.slots.machine import Approximation, Matrix, Values
from atoll.secret_matrices.slots.messages import PlacedBody, placed
from atoll.secret_matrices.slots.openings import Circle
from atoll.study.address import Address

B = TypeVar("B", bound=PlacedBody)

PAPER = "paper-14"
"""The set of the paper's parameters."""
AT_ONCE = 8
"""So many rows are worked on side by side, and held."""
OPENING_LEVEL = 1
"""Openings are made at this level, where two moduli hold any value and its noise."""


class Party(Levelled):
    """The machine of one role, as far as provider and coordinator have it in common."""

    keys: Keys
    session = b""

    def __init__(
        self,
        net: Network,
        record: Record,
        digest: str,
        coordinator: Address,
        providers: Sequence[Address],
        guests: Sequence[Address] = (),
        *,
        set_name: str = PAPER,
        for_tests: bool = False,
        verify: bool = False,
    ) -> None:
        self.set = slots.find(set_name, for_tests=for_tests)
        super().__init__(
            leads=net.me == coordinator,
            n_providers=len(providers),
            slots=self.set.slots,
            fresh_level=self.set.top,
            lowest=self.set.refresh_level,
            verify=verify,
        )
        self.net = net
        self.record = record
        self.digest = digest
        self.coordinator = coordinator
        self.providers = tuple(providers)
        self.guests = tuple(guests)
        """Roles that only receive outputs."""
        self.me = str(net.me)
        self._circles: dict[frozenset[str], Circle] = {}
        self._step = 0

    def next_step(self) -> int:
        """All roles take the same steps, so they count alike."""
        self._step += 1
        return self._step

    def _common(self, what: str, step: int, place: int) -> bytes:
        return digest_of(self.session, "common", what, step, place)

    def _seed(self, what: str) -> bytes:
        return self.record(what, fresh_seed)

    def _circle(self, receivers: frozenset[str]) -> Circle:
        if receivers not in self._circles:
            addresses = (self.coordinator, *self.providers, *self.guests)
            self._circles[receivers] = Circle(
                self.net, self.record, self.digest, self.set, addresses, self.providers, receivers
            )
        return self._circles[receivers]

    # ---- local verbs: noted now, computed with the next verb that sends ----

    def _add(self, xs: Sequence[Later]) -> Later:
        total = xs[0]
        for x in xs[1:]:
            total = Later(self.keys.add, total, x)
        return total

    def _subtract(self, x: Later, y: Later) -> Later:
        return Later(self.keys.subtract, x, y)

    def _plus(self, x: Later, values: Values) -> Later:
        return Later(partial(_given_second, self.keys.plus, values), x)

    def _scaled(self, x: Later, number: float) -> Later:
        return Later(partial(_given_second, self.keys.scaled, int(number) if whole(number) else number), x)

    def _inner(self, pairs: Sequence[tuple[Later, Later | Values]]) -> Later:
        inputs = [x for x, _ in pairs] + [y for _, y in pairs if isinstance(y, Later)]
        values = [None if isinstance(y, Later) else y for _, y in pairs]
        return Later(partial(_inner, self.keys, values), *inputs)

    def _rotate(self, x: Later, steps: int) -> Later:
        return Later(partial(_given_second, self.keys.rotate, steps), x)

    def _polynomial(self, x: Later, approximation: Approximation) -> Later:
        return Later(partial(_polynomial, self.keys, approximation), x)

    # ---- what verbs that send have in common ----

    async def _values(self, held: Sequence[Later]) -> list[Ciphertext]:
        """The ciphertexts of what is held; everything that they need is computed."""
        found: list[Ciphertext] = await self.net.compute(computed, held)
        return found

    async def _lowered(self, rows: Matrix, level: int) -> list[Ciphertext]:
        """Rows that this role holds, at a level not above this one: fewer bytes, and the same numbers."""
        held = [
            x.held if x.level <= level else Later(partial(_given_second, self.keys.lowered, level), x.held)
            for x in rows
        ]
        return await self._values(held)

    async def _receive(self, kind: type[B], sender: Address, step: int, place: int) -> memoryview:
        return placed(await self.net.receive(kind, sender), sender, step, place)

    async def check(self, *, last: bool = False) -> None:
        """Compare what was broadcast; only providers have something to compare."""
        del last


def known(x: Any) -> Later:
    """A ciphertext that is there already."""
    return Later(None, value=x)


def _given_second(step: Callable[..., Any], second: Any, first: Any) -> Any:
    return step(first, second)


def _inner(keys: Keys, values: Sequence[Values | None], *inputs: Ciphertext) -> Ciphertext:
    """Sum of products; ``values`` are the clear second factors, None for one that is among the inputs."""
    others = iter(inputs[len(values) :])
    return keys.inner([(x, next(others) if y is None else y) for x, y in zip(inputs, values, strict=False)])


def _polynomial(keys: Keys, approximation: Approximation, x: Ciphertext) -> Ciphertext:
    return keys.polynomial(x, approximation.coefficients, (approximation.low, approximation.high))
