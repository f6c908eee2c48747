"""What operations on vectors in slots cost on this machine: processor seconds of all cores."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from atoll import randomness
from atoll.bench.timing import processor_seconds
from atoll.crypto import slots
from atoll.crypto.slots import Ciphertext, Keys, Secret, Values
from atoll.secret_matrices.slots.keys import KeyTotals
from atoll.secret_matrices.slots.machine import Operation, Tally
from atoll.secret_matrices.slots.party import OPENING_LEVEL, PAPER
from atoll.secret_matrices.slots.rates import SlotRates
from atoll.secret_matrices.slots.steps import FLOODING_BITS

_SEED = bytes(32)
_OPENED = 256
"""Numbers of a row that is opened, as in the paper's default size; noise hides the other slots."""
_TERMS = 8
_TIMES = 8


class Rates(NamedTuple):
    """Processor seconds of operations, and bytes."""

    steps: SlotRates
    row_bytes: int
    """Of a ciphertext halfway between refreshes."""
    part_bytes: int
    key_bytes: int
    fresh: Mapping[str, float]
    """The lines of the paper's Table 2, at the highest level: by the paper's sign."""

    def provider(self, tally: Tally) -> float:
        """What a provider's operations take, keys apart."""
        return self.steps.provider(tally)

    def coordinator(self, tally: Tally, n_providers: int) -> float:
        """What the coordinator's operations take."""
        return self.steps.coordinator(tally, n_providers)

    def gigabytes(self, provider: Tally) -> float:
        """What a provider sends, about: keys, ciphertexts and its parts of refreshes."""
        rows, parts = (provider.total[kind] for kind in (Operation.SEND, Operation.REFRESH))
        return (self.key_bytes + rows * self.row_bytes + parts * self.part_bytes) / 1e9


def measured(name: str = PAPER, *, for_tests: bool = False) -> Rates:
    """Measure every operation; some seconds."""
    chosen = slots.find(name, for_tests=for_tests)
    secret, totals = Secret.generate(chosen, _SEED), KeyTotals(chosen, _SEED)
    started = time.process_time()
    for key in totals.names:
        totals.totals[key] = totals.part(secret, key, _SEED)
    made = time.process_time()
    keys = totals.keys()
    read = time.process_time() - made
    took = time.process_time() - started
    values = list(randomness.public(0).uniform(-1, 1, (_TERMS + 1, chosen.slots)))
    xs = keys.encrypt_all(values, _SEED, (chosen.top + chosen.refresh_level) // 2)
    part, added, rest, part_bytes = _refresh(keys, secret, values[0])
    rotation = totals.totals[totals.names[-1]]
    summed = processor_seconds(lambda: slots.total(chosen, [rotation, rotation])) / (2 * len(rotation))
    steps = SlotRates(
        each=_operations(keys, xs, values) | {Operation.REFRESH: rest},
        refresh_part=part,
        part_added=added,
        opening_part=_opening(keys, secret, values[0]),
        keys=took,
        keys_read=read,
        key_byte=summed,
    )
    return Rates(
        steps,
        len(xs[0].to_bytes()),
        part_bytes,
        sum(len(key) for key in totals.totals.values()),
        _table2(keys, values) | {"DBootstrap": part + added + rest, "DKeyGen": took},
    )


def _steadily(work: Callable[[], object]) -> float:
    """Of what others are subtracted from."""
    return min(processor_seconds(work) for _ in range(_TIMES))


def _operations(keys: Keys, xs: Sequence[Ciphertext], values: Sequence[Values]) -> dict[Operation, float]:
    """Products are measured as the machines make them: many, relinearised and rescaled once."""
    x, y = xs[:2]
    one_clear = _steadily(lambda: keys.inner([(x, values[0])]))
    many_clear = _steadily(lambda: keys.inner(list(zip(xs, values, strict=True))))
    one = _steadily(lambda: keys.inner([(x, y)]))
    many = _steadily(lambda: keys.inner([(x, z) for z in xs]))
    add = _steadily(lambda: keys.add(x, y))
    weigh, multiply = (many_clear - one_clear) / _TERMS, (many - one) / _TERMS
    rescale = max(0.0, one_clear - weigh)
    return {
        Operation.ADD: add,
        Operation.WEIGH: max(0.0, weigh - add),
        Operation.MULTIPLY: max(0.0, multiply - add),
        Operation.RELINEARISE: max(0.0, one - multiply - rescale),
        Operation.RESCALE: rescale,
        Operation.ROTATE: processor_seconds(lambda: keys.rotate(x, 1)),
        Operation.RERANDOMISE: processor_seconds(lambda: keys.rerandomised(x, _SEED)),
        Operation.SEND: processor_seconds(lambda: Ciphertext.from_bytes(keys.set, x.to_bytes())),
    }


def _refresh(keys: Keys, secret: Secret, values: Values) -> tuple[float, float, float, int]:
    """A provider's part of a refresh, adding it up, and taking the sum; and the part's bytes."""
    x = keys.encrypt(values, _SEED, secret.set.refresh_level)
    part = secret.refresh_part(x, _SEED, _SEED)

    def own() -> None:
        asked = Ciphertext.from_half(secret.set, x.half())
        secret.refresh_part(asked, _SEED, _SEED)

    return (
        processor_seconds(own),
        processor_seconds(lambda: slots.total(secret.set, [part, part])) / 2,
        processor_seconds(lambda: slots.refreshed(x, part, _SEED, 1)),
        len(part),
    )


def _opening(keys: Keys, secret: Secret, values: Values) -> float:
    """A provider's part of an opening, handed to a receiver."""
    x = keys.encrypt(values, _SEED, OPENING_LEVEL)
    public = memoryview(secret.public_part(_SEED, _SEED))

    def own() -> None:
        asked = Ciphertext.from_half(secret.set, x.half())
        secret.switching_parts([asked], [_OPENED], _SEED, public, _SEED, FLOODING_BITS)

    return processor_seconds(own)


def _table2(keys: Keys, values: Sequence[Values]) -> dict[str, float]:
    x, y = keys.encrypt_all(values[:2], _SEED)
    v = keys.encoded(values[2], x.level)

    def dot() -> None:
        z = keys.times(x, y)
        for i in range(8):
            z = keys.add(z, keys.rotate(z, 1 << i))

    return {
        "c + c'": processor_seconds(lambda: keys.add(x, y)),
        "v · c": processor_seconds(lambda: keys.times(x, v)),
        "c · c'": processor_seconds(lambda: keys.times(x, y)),
        "Rot": processor_seconds(lambda: keys.rotate(x, 1)),
        "dot product, 1 x 256": processor_seconds(dot),
        "Send": processor_seconds(lambda: Ciphertext.from_bytes(keys.set, x.to_bytes())),
    }
