"""The coordinator and all providers but one hold everything but one share, and can open nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.support.sfpca_runs import encrypted

from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.errors import RangeOverflow
from atoll.protocols.pca.sfpca import messages
from atoll.runtime.engine import Observer
from atoll.secret_matrices import messages as machine_messages
from atoll.secret_matrices.machine import Job, Shared
from atoll.secret_matrices.widths import widths_for
from atoll.study.address import Address

FRACTION = 40
EVERYBODY = frozenset({"all"})


def as_integers(words: Any) -> np.ndarray:
    return go.to_ints(words)


def test_shares_of_all_but_one_provider_say_nothing_about_an_intermediate() -> None:
    blocks = [np.full((2, 2), float(i + 1)) for i in range(3)]

    async def multiply(machine, inputs, receivers):  # type: ignore[no-untyped-def]
        own = None if inputs.moments is None else np.full((2, 2), 3 << FRACTION)
        x = machine.private(None, own, (2, 2), FRACTION, 4)
        made = await machine.product((x, x), fraction=FRACTION, bits=8, name="square")
        return made.share

    shares, _ = encrypted(multiply, blocks)
    together = sum(as_integers(share) for share in shares.values())
    assert np.abs(together - (162 << FRACTION)).max() <= len(shares)  # (3 x 3)^2, twice
    for missing in ("p0/provider", "p1/provider", "p2/provider"):
        coalition = sum(as_integers(share) for name, share in shares.items() if name != missing)
        # What is missing is a mask 64 bits wider than any value here.
        assert np.abs(coalition).min() > 1 << (FRACTION + 8 + 40)


def test_a_product_of_two_providers_is_masked_by_both_and_concerns_nobody_else() -> None:
    blocks = [np.full((2, 2), float(i + 1)) for i in range(4)]

    async def multiply(machine, inputs, receivers):  # type: ignore[no-untyped-def]
        factors = [
            machine.private(
                owner, np.full((2, 2), 3 << FRACTION) if inputs.me == owner else None, (2, 2), FRACTION, 4
            )
            for owner in inputs.providers[:2]
        ]
        made = await machine.product(tuple(factors), fraction=FRACTION, bits=8, name="pair")
        return made.share

    shares, _ = encrypted(multiply, blocks)
    values = {name: as_integers(share) for name, share in shares.items()}
    assert np.abs(sum(values.values()) - (18 << FRACTION)).max() <= len(shares)
    assert not np.any(values["p2/provider"])
    assert not np.any(values["p3/provider"])
    for honest in ("p0/provider", "p1/provider"):
        coalition = sum(value for name, value in values.items() if name != honest)
        assert np.abs(coalition).min() > 1 << (FRACTION + 8 + 40)


class Everything(Observer):
    """All messages and all records of a run."""

    def __init__(self) -> None:
        self.decoder = Decoder[Message](messages.MESSAGES)
        self.sent_by: dict[str, list[Any]] = defaultdict(list)
        self.drawn: dict[str, Any] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.sent_by[sender.party].append(self.decoder.decode(bytes(data)))

    def finished(self, address: Address, record: Any) -> None:
        self.drawn[address.party] = record.drawn

    def body(self, party: str, kind: type[Message]) -> bytes:
        (message,) = (m for m in self.sent_by[party] if isinstance(m, kind))
        return bytes(message.body)


def test_a_coalition_with_all_it_holds_of_a_run_cannot_decrypt_an_intermediate() -> None:
    """Coordinator and two of three providers: every message that any of them sent or received (so also the
    honest one's product and masked share), and the seeds that the two recorded."""
    jobs: list[Job] = []

    async def multiply(machine, inputs, receivers):  # type: ignore[no-untyped-def]
        own = None if inputs.moments is None else np.full((2, 2), 3 << FRACTION)
        x = machine.private(None, own, (2, 2), FRACTION, 4)
        jobs.append(Job(((x, x),), FRACTION, 8, "square"))
        await machine.products(jobs[-1:])

    run, names = Everything(), ["p0", "p1", "p2"]
    encrypted(multiply, [np.full((2, 2), float(i + 1)) for i in range(3)], observer=run)
    plan = widths_for(3, jobs[0])
    layout, truth = plan.layouts[0], 162 << FRACTION

    def decrypted(coalition: list[str], instead: bytes | None) -> np.ndarray:
        total, own = go.ProductSum(plan.ring, layout), 0
        for name in names:
            total.add(run.body(name, machine_messages.ProductPart))
        second = total.second()
        for name in names:
            if name in coalition:
                secret = go.Secret(plan.ring, run.drawn[name]["secret key deep"])
                message, share = secret.refresh(second, layout, plan.clearing, b"x" * 32, name.encode())
                own = own + as_integers(share)
            else:
                message = run.body(name, machine_messages.MaskedShare) if instead is None else instead
            total.add_share(message)
        return np.asarray(as_integers(total.clear(plan.clearing)) + own)

    assert np.abs(decrypted(names, None) - truth).max() <= 4
    for honest in names:
        coalition = [name for name in names if name != honest]
        # With the honest one's masked share: its mask remains, 64 bits wider than any value here.
        assert np.abs(decrypted(coalition, None) - truth).min() > 1 << (FRACTION + 8 + 40)
        # Without it, or with a guess at its key: not even that.
        guess, _ = go.Secret(plan.ring, b"g" * 32).refresh(
            bytes(layout.out_polys * plan.ring.poly_size), layout, plan.clearing, b"y" * 32, b""
        )
        for instead in (bytes(len(guess)), guess):
            with pytest.raises(RangeOverflow, match="a share is wrong or missing"):
                decrypted(coalition, instead)


def test_a_product_cannot_be_decrypted_without_the_last_part_of_the_key() -> None:
    parties, rng = 3, np.random.default_rng(1)
    left, right = (rng.integers(-9, 10, (2, 2)).astype(object) << 20 for _ in range(2))
    x = Shared((2, 2), 20, 5, go.from_ints(left, 1), EVERYBODY, known=True)
    y = Shared((2, 2), 20, 5, go.from_ints(right, 1), EVERYBODY, known=True)
    plan = widths_for(parties, Job(((x, y),), 30, 11, "test"))
    ring, layout, shift = plan.ring, plan.layouts[0], plan.shifts[0]
    seeds = [bytes([i]) * 32 for i in range(20)]
    secrets = [go.Secret(ring, seeds[i]) for i in range(parties)]
    common = [b"c" * 32, b"d" * 32]
    key = go.PublicKey(ring, [s.key_share(common[0], seeds[4 + i]) for i, s in enumerate(secrets)], common[0])
    zero = go.from_ints(np.zeros((2, 2), np.int64), 1)
    parts = [
        s.encrypt(x.share if i == 0 else zero, 25, shift, layout, common[1], seeds[8 + i])
        for i, s in enumerate(secrets)
    ]
    body = go.assemble(ring, None, shift, layout, parts)
    ciphertext = go.Ciphertext(ring, layout, body, common[1])
    product = go.multiply(
        key, [(ciphertext, go.Right(ring, y.share, 25, layout))], seed=seeds[12], domain=b"product"
    )

    def opened_by(members: list[int]) -> np.ndarray:
        total = go.ProductSum(ring, layout)
        total.add(product)
        second, own = total.second(), []
        for i in range(parties):
            # In place of what an absent member would send, the coalition can only put zeros.
            message, share = secrets[i].refresh(second, layout, plan.clearing, seeds[13 + i], b"refresh")
            total.add_share(message if i in members else bytes(len(message)))
            own.append(as_integers(share) if i in members else 0)
        return np.asarray(as_integers(total.clear(plan.clearing)) + sum(own))

    truth = (left @ right) >> 10
    assert np.abs(opened_by([0, 1, 2]) - truth).max() <= parties + 1
    for coalition in ([0, 1], [0, 2], [1, 2]):
        # Without one decryption share the rest is uniform modulo Q, wider than any mask.
        with pytest.raises(RangeOverflow, match="a share is wrong or missing"):
            opened_by(coalition)
