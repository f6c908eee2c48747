"""Work on several cores: in order, and never far ahead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import threadpoolctl

from atoll.threads import in_order, in_threads, one_blas_thread, spans


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


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_spans_cover_everything_once_and_none_is_too_large(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.threads.cores", lambda: cores)
    for count in (0, 1, 2, 7, 100, 1001):
        for largest in (1, 3, 64, 5000):
            found = spans(count, largest)
            items = list(range(count))
            assert [items[part] for part in found] == [
                items[part.start : min(part.stop, count)] for part in found
            ]
            assert [i for part in found for i in items[part]] == items
            assert all(part.stop - part.start <= largest for part in found)
            assert all(part.stop - part.start <= max(1, -(-count // cores)) for part in found)


@pytest.mark.parametrize("cores", [1, 3])
def test_work_in_threads_comes_back_in_order_with_its_errors(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.threads.cores", lambda: cores)
    assert in_threads(lambda task: task * task, range(50)) == [i * i for i in range(50)]
    for tasks in (range(1), range(9)):
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda task: 1 // task, tasks)


def test_blas_has_one_thread_as_long_as_anybody_is_inside() -> None:
    """How many threads add up a product would show in its last bit, and so in what is sent again."""

    def threads() -> list[int]:
        found = threadpoolctl.threadpool_info()
        return [one["num_threads"] for one in found if one["user_api"] == "blas"]

    np.ones((2, 2)) @ np.ones((2, 2))  # so that a library is loaded
    with threadpoolctl.threadpool_limits(limits=3, user_api="blas"):
        before = threads()
        with one_blas_thread:
            with one_blas_thread:
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before
