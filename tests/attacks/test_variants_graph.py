"""Sparse masks once more: coalitions at the stated bound and one above it, standing at the worst places; a
receiver that knows every nonce but one; colluding neighbours that hold shares of both secrets."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.attacks.test_mask_graph import (
    BLOCK,
    VICTIM,
    N,
    example,
    order_in,
    run,
    sent,
    unmasked_by,
    values_of,
)
from tests.support.examples import Example
from tests.support.taps import Tap

from atoll import fixedpoint, randomness
from atoll.codec import Decoder, Message
from atoll.crypto import shamir
from atoll.errors import AtollError
from atoll.protocols import protocol_of, resolve
from atoll.secure_sums import drawn_graph, graph, masks
from atoll.secure_sums.masks import MaskedInput
from atoll.secure_sums.recoverable_masks import MaskBackup

STATED, DEGREE = 13, 14


def opened(
    study: Example, tap: Tap, some: list[int], colluders: set[int], near: list[list[int]]
) -> np.ndarray:
    """The inputs of some together, without the streams that colluders know: those among some cancel."""
    total = unmasked_by(study, tap, some[0], colluders & set(near[some[0]]))
    for one in some[1:]:
        total = fixedpoint.add(total, unmasked_by(study, tap, one, colluders & set(near[one])))
    return fixedpoint.decode(total)


def test_colluders_on_both_sides_of_an_arc_open_its_sum_from_one_above_the_stated_number_on() -> None:
    """Half a neighbourhood on either side cuts five islands off. Whichever one of the fourteen is honest, its
    streams are in every sum that the others can form."""
    study = example()
    tap = run(study)
    places = order_in(study, tap).places
    near = graph.on_ring(places, DEGREE)
    arc, around = list(places[7:12]), [*places[:7], *places[12:19]]
    assert (len(around), N // 3, graph.degree_of(N, 0, "sparse").neighbours) == (STATED + 1, STATED, DEGREE)
    true = sum(values_of(study, one) for one in arc)
    np.testing.assert_allclose(opened(study, tap, arc, set(around), near), true, rtol=1e-12)
    for honest in (around[0], around[6], around[7], around[13]):
        colluding = set(around) - {honest}
        assert len(colluding) == STATED
        for some in (arc, [*arc, honest]):
            far = opened(study, tap, some, colluding, near) - sum(values_of(study, one) for one in some)
            assert np.abs(far).min() > 1e3


def test_one_unknown_nonce_is_enough_for_a_uniform_ring() -> None:
    """A receiver with all other contributors has no say in who stands beside the one it does not have."""
    session, draws = "study/sum", 200
    known = [randomness.derive(bytes(32), "known", i) for i in range(N)]
    beside = np.zeros(N)
    for number in range(draws):
        nonces = [*known]
        nonces[VICTIM] = randomness.derive(b"\1" * 32, "unknown", number)
        said = [drawn_graph.commitment(session, i, nonce) for i, nonce in enumerate(nonces)]
        ring = graph.on_ring(drawn_graph.order_of(session, said, nonces).places, DEGREE)
        beside[ring[VICTIM]] += 1
    others = np.delete(beside, VICTIM)
    chance = DEGREE / (N - 1)
    assert beside[VICTIM] == 0
    assert np.abs(others - draws * chance).max() < 5 * np.sqrt(draws * chance * (1 - chance))
    assert others.std() < 1.5 * np.sqrt(draws * chance * (1 - chance))


def backups(study: Example, tap: Tap) -> dict[int, MaskBackup]:
    """What the victim gave each neighbour."""
    contributors = study.study.who("contributor")
    decoder = Decoder[Message](protocol_of("sum").all_messages(study.study))
    found = {}
    for to, data in tap.outboxes[contributors[VICTIM]]:
        message = decoder.decode(data)
        if isinstance(message, MaskBackup):
            found[contributors.index(to)] = message
    return found


def recovered(shares: dict[int, bytes]) -> bytes:
    try:
        return shamir.recover(shares)
    except AtollError:  # no secret has so many bytes
        return b""


def test_colluding_neighbours_open_a_backup_at_the_threshold_and_not_below() -> None:
    """Six may collude in this study; eleven would have to be neighbours of one island."""
    study = example(dropouts=1, colluders=6)
    tap = run(study)
    due = graph.degree_of(N, 1, "sparse", 6)
    threshold = due.neighbours - due.missing
    assert (due.neighbours, due.missing, threshold) == (12, 1, 11)
    given = backups(study, tap)
    assert set(given) == set(graph.on_ring(order_in(study, tap).places, due.neighbours)[VICTIM])
    drawn = tap.records[study.study.who("contributor")[VICTIM]].drawn
    secrets: dict[str, Any] = {
        "key_share": next(value for tag, value in drawn.items() if "/masks/key/" in tag),
        "self_share": next(value for tag, value in drawn.items() if "/masks/self/" in tag),
    }
    for kind, secret in secrets.items():
        shares = {u + 1: getattr(backup, kind) for u, backup in given.items()}
        few, enough = (dict(list(shares.items())[:count]) for count in (threshold - 1, threshold))
        assert recovered(enough) == secret
        assert recovered(few) != secret
    # Both together are the input, once the streams of all neighbours are known: so many are never asked for.
    block = f"{resolve(study.study).digest}/sum/{BLOCK}"
    body = unmasked_by(study, tap, VICTIM, set(given))
    x = fixedpoint.subtract(body, masks.stream(secrets["self_share"], block, body.shape[1]))
    np.testing.assert_array_equal(fixedpoint.decode(x), values_of(study, VICTIM))
    assert len(sent(study, tap, MaskedInput)[VICTIM]) == 1
