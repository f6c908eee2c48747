"""Programs say precision and bounds; the machine picks ring, blocks and keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.sfpca_runs import encrypted

from atoll.crypto import products as go
from atoll.errors import ParameterError
from atoll.secret_matrices.machine import Job, Precision, Shared
from atoll.secret_matrices.simulated import Simulated
from atoll.secret_matrices.widths import rings_for, widths_for, with_one_left

SOURCE = Path(__file__).parents[2] / "src" / "atoll"


def shared(rows: int, cols: int, fraction: int, bits: int = 1) -> Shared:
    return Shared((rows, cols), fraction, bits, None, frozenset({"all"}))


def job(fraction: int, *, cols: int = 8, **options: Any) -> Job:
    return Job(((shared(4, 8, fraction), shared(8, cols, fraction)),), fraction, 4, "test", **options)


def test_names_of_rings_stand_in_one_module() -> None:
    names = "|".join(re.escape(ring.family) + r"\d*" for ring in go.rings().values())
    quoted = re.compile(rf"""["']({names})["']""")
    found = [str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if quoted.search(p.read_text())]
    assert found == ["secret_matrices/widths.py"]


def test_the_narrowest_ring_that_holds_a_product_is_taken() -> None:
    plans = [widths_for(3, job(fraction)) for fraction in (12, 40, 100)]
    assert plans[0].ring == rings_for(Precision.LOW)[0]
    assert plans[1].ring == rings_for(Precision.HIGH)[0]
    assert plans[1].ring.log_q < plans[2].ring.log_q
    with pytest.raises(ParameterError, match=r"test: a product needs \d+ bits, the widest ring has 416"):
        widths_for(3, job(200))


def test_a_machine_plans_with_the_keys_that_it_has() -> None:
    assert widths_for(3, job(12), precisions=[Precision.HIGH]).ring == rings_for(Precision.HIGH)[0]
    with pytest.raises(ParameterError, match="the widest ring has 208"):
        widths_for(3, job(40), precisions=[Precision.LOW])


def test_products_with_one_left_side_share_its_blocks_and_ring() -> None:
    machine = Simulated(3, np.random.default_rng(0).random)
    fitting = with_one_left(machine, [job(12), job(12, cols=500)])
    assert len({made.cut for made in fitting}) == 1
    assert {widths_for(3, made).ring.name for made in fitting} == {rings_for(Precision.LOW)[0].name}
    # One of them needs more: all go where it fits.
    precise = with_one_left(machine, [job(12), job(40)])
    assert {made.cut.precision for made in precise if made.cut} == {Precision.HIGH}
    assert {widths_for(3, made).shifts for made in precise} == {widths_for(3, precise[1]).shifts}


def test_a_product_of_few_bits_runs_without_the_key_for_such() -> None:
    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        assert machine.precisions == (Precision.HIGH,)
        own = None if inputs.moments is None else np.array([[3 << 10]])
        x = machine.private(None, own, (1, 1), 10, 4)
        return await machine.released(
            await machine.product((x, x), fraction=10, bits=8, name="square"), receivers
        )

    blocks = [np.full((2, 2), 1.0 + i) for i in range(2)]
    results, _ = encrypted(program, blocks, precisions=[Precision.HIGH])
    assert results["p0/provider"] == pytest.approx(36.0, abs=0.01)
