"""What steps on secret matrices cost on this machine, for the planner: processor seconds of all cores."""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from atoll.bench import slot_rates
from atoll.bench.timing import processor_seconds
from atoll.crypto import products as go
from atoll.crypto.digest import digest
from atoll.crypto.products import Clearing, Layout, Ring
from atoll.network import Network, Record
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Learned, Protocol
from atoll.randomness import expand_words, fresh_seed
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices.coefficients import public_integers
from atoll.secret_matrices.costs.rates import PythonRates, Rate, Rates, RingRates
from atoll.secret_matrices.machine import EVERY_PRECISION
from atoll.secret_matrices.messages import ProductPart
from atoll.secret_matrices.openings import floats
from atoll.secret_matrices.rotations import gaussians, rotation
from atoll.secret_matrices.widths import rings_for, widest_ring
from atoll.study.model import Parameters, Party, Study
from atoll.threads import cores, one_blas_thread

_SEED = bytes(32)
_WORDS = 3


def calibrate() -> Rates:
    """The whole table."""
    with one_blas_thread:
        return Rates(
            cores(),
            go.vector_path(),
            {ring.name: _ring(ring) for ring in go.rings().values()},
            _python(),
            slots=slot_rates.measured().steps,
        )


def _integers(rows: int, cols: int, words: int = _WORDS, bits: int = 100) -> go.Integers:
    """Random integers of that many bits."""
    drawn = expand_words(_SEED, rows * cols * words, "calibrate").reshape(rows, cols, words)
    lowest = np.array([min(64, max(0, bits - 64 * w)) for w in range(words)])
    masks = np.array([(1 << int(b)) - 1 for b in lowest], dtype=np.uint64)
    return np.ascontiguousarray(drawn & masks)


# ---- the Go library ----

_COUNT = 4
"""Polynomials of one measurement."""


class _Bench:
    """Keys and matrices of one ring."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.secret = go.Secret(ring, fresh_seed())
        self.key = go.PublicKey(ring, [self.secret.key_share(_SEED, fresh_seed())], _SEED)
        noise, limits = go.noise_bits(ring, 2, 40), go.limits()
        value = int(ring.log_q) - limits.mask_margin - 4
        self.clearing = Clearing(2, value, 40, noise + limits.truncate_margin, value + limits.mask_margin)

    def left(self, entries: int) -> tuple[int, int, float, float, float, float]:
        """Polynomials, entries, and seconds to encrypt, add publicly, gather and read."""
        ring, rows = self.ring, _COUNT
        y = Layout(rows, entries, 1, 1, entries, 1)
        x = _integers(rows, entries)
        body = self.secret.encrypt(x, 128, 20, y, _SEED, _SEED)
        encrypted = processor_seconds(lambda: self.secret.encrypt(x, 128, 20, y, _SEED, _SEED))
        alone = processor_seconds(lambda: go.assemble(ring, None, 20, y, [body, body]))
        more = processor_seconds(lambda: go.assemble(ring, None, 20, y, [body] * 4))
        public = processor_seconds(lambda: go.assemble(ring, x, 20, y, [body, body]))
        read = processor_seconds(lambda: go.Ciphertext(ring, y, body, _SEED).close())
        # What does not grow with the parts is small; it is booked to reading.
        gather = max(0.0, (more - alone) / 2)
        return rows, rows * entries, encrypted, public - alone, gather, read + max(0.0, alone - 2 * gather)

    def right(self, entries: int) -> tuple[int, int, float]:
        """Polynomials, entries, and seconds to encode."""
        y = Layout(1, entries, _COUNT, 1, entries, 1)
        x = _integers(entries, _COUNT)
        spent = processor_seconds(lambda: go.Right(self.ring, x, 128, y).close())
        return _COUNT, entries * _COUNT, spent

    def out(self, entries: int) -> dict[str, tuple[int, int, float]]:
        """Polynomials, entries, and seconds of everything that happens to a product."""
        ring, cols = self.ring, entries * _COUNT
        y = Layout(1, 1, cols, 1, 1, entries)
        body = self.secret.encrypt(_integers(1, 1), 128, 20, y, _SEED, _SEED)
        left = go.Ciphertext(ring, y, body, _SEED)
        right = go.Right(ring, _integers(1, cols), 128, y)
        product = go.multiply(self.key, [(left, right)], seed=_SEED, domain=b"")
        total = go.ProductSum(ring, y)
        second = total.second()
        masked, _ = self.secret.refresh(second, y, self.clearing, _SEED, b"")
        full = go.ProductSum(ring, y)
        for seed in (_SEED, fresh_seed()):
            full.add_share(self.secret.refresh(second, y, self.clearing, seed, b"")[0])
        steps: dict[str, Callable[[], object]] = {
            "zero": lambda: go.multiply(self.key, [(left, right)], seed=_SEED, domain=b""),
            "add": lambda: total.add(product),
            "second": total.second,
            "refresh": lambda: self.secret.refresh(second, y, self.clearing, _SEED, b""),
            "clear": lambda: full.clear(self.clearing),
        }
        spent = {name: (_COUNT, cols, processor_seconds(work)) for name, work in steps.items()}
        spent["share"] = (_COUNT, cols, processor_seconds(lambda: total.add_share(masked)))
        return spent

    def products(self, zero: Rate) -> tuple[float, float]:
        """Seconds of one multiply-accumulate, and of encoding a right side on the way to it."""
        ring, rows, inner = self.ring, 2, (1 << 20) // self.ring.degree
        y = Layout(rows, inner, 1, 1, 1, 1)
        body = self.secret.encrypt(_integers(rows, inner), 128, 20, y, _SEED, _SEED)
        left = go.Ciphertext(ring, y, body, _SEED)
        spent = []
        for streamed in (False, True):
            right = go.Right(ring, _integers(inner, 1), 128, y, streamed=streamed)
            work = partial(go.multiply, self.key, [(left, right)], seed=_SEED, domain=b"")
            spent.append(processor_seconds(work))
        kept, on_the_way = spent
        triple = max(0.0, kept - zero.seconds(rows, rows)) / (rows * inner)
        return triple, max(0.0, on_the_way - kept) / inner


def _ring(ring: Ring) -> RingRates:
    bench, whole = _Bench(ring), ring.degree // 2
    small, large = bench.left(1), bench.left(whole)
    few, many = bench.out(1), bench.out(whole)
    # A product with one inner block costs one multiplication beside the encryption of zero.
    zero = Rate.through(few["zero"], many["zero"])
    encode = Rate.through(bench.right(1), bench.right(whole))
    triple, stream = bench.products(zero)
    return RingRates(
        encrypt=Rate.through((*small[:2], small[2]), (*large[:2], large[2])),
        public=Rate.through((*small[:2], small[3]), (*large[:2], large[3])),
        gather=large[4] / large[0],
        read=large[5] / large[0],
        encode=encode,
        stream=Rate(max(0.0, stream - encode.part), encode.part),
        multiply=triple,
        zero=Rate(max(0.0, zero.each - triple), zero.part),
        add=Rate.through(few["add"], many["add"]),
        second=many["second"][2] / _COUNT,
        refresh=Rate.through(few["refresh"], many["refresh"]),
        share=many["share"][2] / many["share"][1],
        clear=many["clear"][2] / many["clear"][1],
    )


# ---- Python ----


def _python() -> PythonRates:
    size = 32
    words = _integers(size, size)
    values = go.to_ints(words)
    entries = size * size
    public = np.linspace(-1.0, 1.0, entries).reshape(size, size)
    narrow = np.arange(entries).reshape(size, size)
    units = public_integers(public)
    one = _integers(1, 1)
    data = bytes(1 << 20)
    per: dict[str, Any] = {
        "to_integers": processor_seconds(lambda: go.to_ints(words)) / entries,
        "from_integers": processor_seconds(lambda: go.from_ints(values, _WORDS)) / entries,
        "from_words": processor_seconds(lambda: go.from_ints(narrow, _WORDS)) / entries,
        "combine": processor_seconds(lambda: go.combine([words] * 4, [3] * 4, 10, 4)) / (4 * entries),
        "times_public": processor_seconds(lambda: units @ values) / size**3,
        "weigh": processor_seconds(lambda: (public_integers(public) * values + 5) >> 9) / entries,
        "smudge": processor_seconds(lambda: go.smudge(words, 80, _SEED, b"")) / entries,
        "floats": processor_seconds(lambda: floats(words, 100)) / entries,
        "gaussian": processor_seconds(lambda: gaussians(_SEED, 10_000)) / 10_000,
        "hash_byte": processor_seconds(lambda: digest(data)) / len(data),
        "fingerprint_byte": _fingerprints(),
        "fresh_byte": processor_seconds(partial(_touch, 1 << 22)) / (1 << 22),
        "linear": processor_seconds(lambda: go.combine([one, one], [3, 3], 10, 4)),
    }
    empty, whole = _message(0), _message(len(data))
    own = {name: rate for p in PROTOCOLS.values() for name, rate in p.timed(processor_seconds).items()}
    return PythonRates(
        **per,
        **own,
        rotation=_rotation(),
        message=empty,
        byte=max(0.0, whole - empty) / len(data),
        step=_handing_over(),
        keys=_keys(),
    )


def _touch(size: int) -> None:
    """Memory that nobody has used before: what is repeated otherwise finds its own again."""
    with mmap.mmap(-1, size) as fresh:
        for page in range(0, size, mmap.PAGESIZE):
            fresh[page] = 1


def _fingerprints() -> float:
    ring, taken = widest_ring(), go.Fingerprint(_SEED)
    polys = bytes(2 * ring.poly_size)
    return processor_seconds(lambda: taken.of(ring, polys, ring.degree)) / len(polys)


def _rotation() -> Rate:
    small, large = 8, 32
    spent = [processor_seconds(partial(rotation, _SEED, size, 120)) for size in (small, large)]
    return Rate.through((small, small**3, spent[0]), (large, large**3, spent[1]))


_MESSAGES = 200


async def _sender(net: Network, study: Study, _own: object, _record: Record) -> Learned:
    body = memoryview(bytes(study.read_parameters(_Size).size))
    for i in range(_MESSAGES):
        await net.send(study.the("receiver"), ProductPart(i, body))
        await net.receive(ProductPart, study.the("receiver"))
    return Learned()


async def _receiver(net: Network, study: Study, _own: object, _record: Record) -> Learned:
    for _ in range(_MESSAGES):
        await net.send(study.the("sender"), await net.receive(ProductPart, study.the("sender")))
    return Learned()


class _Size(Parameters, frozen=True):
    size: int = 0


_PING_PONG = Protocol(
    name="ping-pong",
    title="",
    roles={"sender": _sender, "receiver": _receiver},
    data_roles=frozenset(),
    messages=(ProductPart,),
    parameters=_Size,
    outputs={},
    learns=lambda _: [],
    adversary="",
    single_roles=frozenset({"sender", "receiver"}),
    uses_sum=False,
)


def _message(size: int) -> float:
    """One message through the local engine, both ends."""
    both = (Party("a", ("sender",)), Party("b", ("receiver",)))
    study = Study(name="ping-pong", protocol="ping-pong", parties=both, parameters={"size": size})
    return processor_seconds(lambda: LocalEngine().run(_PING_PONG, study, {})) / (2 * _MESSAGES)


def _handing_over() -> float:
    async def many() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(100):
            await loop.run_in_executor(None, int)

    return processor_seconds(lambda: asyncio.run(many())) / 100


def _keys() -> float:
    def make() -> None:
        for rings in map(rings_for, EVERY_PRECISION):
            secrets = [go.Secret(ring, _SEED) for ring in rings]
            share = secrets[-1].key_share(_SEED, _SEED)
            for ring in rings:
                go.PublicKey(ring, [share[: ring.poly_size]], _SEED)

    return processor_seconds(make)
