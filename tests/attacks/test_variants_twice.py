"""Two sums over the same inputs: a study that is run again, also after an island left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.examples import Example, summation
from tests.support.taps import Tap, tapped

from atoll import fixedpoint
from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.protocols import protocol_of
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults

VICTIM = "island-1"


def plus(example: Example, step: float) -> Example:
    """The same study, where the victim's numbers are others."""
    values = {name: island.features(island.columns) for name, island in example.islands.items()}
    values[VICTIM] = values[VICTIM] + step
    return Example(example.study, as_islands(values))


def blocks(example: Example, tap: Tap) -> Iterator[tuple[str, fixedpoint.Limbs]]:
    """Every block of numbers that left the victim, to whomever."""
    decoder = Decoder[Message](protocol_of("sum").all_messages(example.study))
    victim = next(a for a in example.study.who("contributor") if a.party == VICTIM)
    for to, data in tap.outboxes[victim]:
        message: Any = decoder.decode(data)
        for name in message.__struct_fields__:
            value = getattr(message, name)
            if isinstance(value, np.ndarray) and value.shape[0] == fixedpoint.LIMBS:
                yield f"{to} {type(message).__name__}.{name}", value


@pytest.mark.parametrize(("method", "options"), [("masks", {}), ("masks", {"dropouts": 1}), ("shares", {})])
def test_a_second_run_of_one_study_hides_its_inputs_anew(method: str, options: dict[str, Any]) -> None:
    """Streams come from keys of one run: else two runs would show by how much an input changed."""
    first, second = summation(method, options), plus(summation(method, options), 1.0)
    assert first.study.digest == second.study.digest
    one, two = (dict(blocks(example, tapped(example))) for example in (first, second))
    assert set(one) == set(two)
    for place in one:
        apart = fixedpoint.decode(fixedpoint.subtract(two[place], one[place]))
        assert np.abs(apart - 1.0).min() > 1e3
        assert np.abs(apart).min() > 1e3
    assert one


@pytest.mark.parametrize("left_at", [1, 4], ids=["before its keys", "after its keys"])
def test_a_run_after_an_island_left_is_that_islands_part(left_at: int) -> None:
    """No secure sum hides what two totals say: the threat model tells whoever approves a second run."""
    example = summation("masks", {"dropouts": 1})
    protocol = protocol_of("sum")
    faults = Faults(crash={f"{VICTIM}/contributor": left_at})
    without = LocalEngine(faults=faults).run(protocol, example.study, example.own)
    with_it = LocalEngine().run(protocol, example.study, example.own)
    receiver = example.study.the("receiver")
    totals = [run.learned[receiver].outputs["total"] for run in (with_it, without)]
    assert [len(run.learned[receiver].outputs["islands"]) for run in (with_it, without)] == [4, 3]
    island = example.islands[VICTIM]
    np.testing.assert_allclose(totals[0] - totals[1], island.features(island.columns).ravel(), atol=1e-12)
