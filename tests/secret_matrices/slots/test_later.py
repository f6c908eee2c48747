"""Local steps that are done later, together."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from atoll.secret_matrices.slots.later import Later, computed


def known(value: Any) -> Later:
    return Later(None, value=value)


def test_every_step_is_done_once_and_only_if_somebody_needs_it() -> None:
    done: list[str] = []

    def step(name: str, *inputs: Later) -> Later:
        def work(*values: int) -> int:
            done.append(name)
            return 1 + sum(values)

        return Later(work, *inputs)

    a = step("a", known(1))
    b, c = step("b", a, a), step("c", a)
    d = step("d", b, c)
    step("nobody's", d)
    assert computed([d, b]) == [9, 5]
    assert computed([d, c]) == [9, 3]
    assert sorted(done) == ["a", "b", "c", "d"]


def test_steps_that_do_not_need_each_other_are_done_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.secret_matrices.slots.later.cores", lambda: 2)
    both = threading.Barrier(2, timeout=20)
    first, second = (Later(lambda: both.wait() >= 0) for _ in range(2))
    assert computed([first, second]) == [True, True]


def test_intermediate_values_are_let_go_as_soon_as_they_were_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred chains, one after the other: not all first links, then all second ones."""
    monkeypatch.setattr("atoll.secret_matrices.slots.later.cores", lambda: 2)
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    class Large:
        def __init__(self) -> None:
            nonlocal most
            alive.add(self)
            most = max(most, len(alive))

    def chain(total: Later | None) -> Later:
        link = Later(Large)
        for _ in range(3):
            link = Later(lambda _: Large(), link)
        return link if total is None else Later(lambda *_: Large(), total, link)

    total: Later | None = None
    for _ in range(100):
        total = chain(total)
    assert total is not None
    computed([total])
    gc.collect()
    assert len(alive) == 1
    assert most < 12


def test_a_step_that_fails_ends_all_and_says_why() -> None:
    def broken(_: int) -> int:
        raise ArithmeticError("of this step")

    bad = Later(broken, known(1))
    with pytest.raises(ArithmeticError, match="of this step"):
        computed([Later(lambda x: x, bad), *(Later(lambda: 1) for _ in range(5))])


def test_what_is_shown_of_a_step_says_nothing_of_its_value() -> None:
    assert repr(known("secret")) == "<Later: known>"
    assert "secret" not in repr(Later(lambda x: x, known("secret")))
