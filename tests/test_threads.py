"""Work on several cores: in order, and never far ahead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atoll.threads import in_order


@pytest.mark.parametrize("cores", [1, 2])
def test_results_come_in_order_and_tasks_are_taken_a_few_ahead(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.threads.cores", lambda: cores)
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for i in range(20):
            taken += 1
            yield i

    for i, found in enumerate(in_order(lambda task: task * task, tasks(), 20)):
        assert found == i * i
        assert taken <= i + 1 + cores
    assert taken == 20
