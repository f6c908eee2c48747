"""What a run's caller sees, party by party, and what is said of where it was booked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.examples import EXAMPLES, pppca, private_pppca

from atoll.privacy.ledger import Ledger
from atoll.protocols.base import Learned
from atoll.protocols.own import Own
from atoll.runtime.execute import Run, booked, joined
from atoll.runtime.result import Result
from atoll.runtime.transcript import NOTED, Transcript
from atoll.study.address import Address

A, B, C = Address("st", "provider"), Address("st-mary", "provider"), Address("office", "server")


def costs() -> Transcript:
    transcript = Transcript(rounds=3)
    for sender, to, size in ((A, C, 10), (B, C, 20), (C, A, 5), (B, A, 7)):
        transcript.sent(sender, to, "Kind", size)
        transcript.received(to, size)
    return transcript


def test_a_party_sees_its_own_roles_and_messages_and_no_others() -> None:
    """Also where one party's name is the beginning of another's."""
    mine = costs().of_party("st")
    assert list(mine.roles) == ["st/provider"]
    assert (mine.bytes, mine.messages, mine.roles["st/provider"].bytes_received) == (10, 1, 12)
    assert mine.links() == {
        ("st/provider", "office/server"): (1, 10),
        ("office/server", "st/provider"): (1, 5),
        ("st-mary/provider", "st/provider"): (1, 7),
    }
    assert costs().of_party("mary").roles == {}


def test_what_a_run_cost_adds_up() -> None:
    whole = costs()
    assert (whole.messages, whole.bytes, whole.kinds) == (4, 42, {"Kind": 4})
    assert [cost.messages_received for cost in whole.roles.values()] == [2, 2, 0]
    assert {name: cost.bytes_received for name, cost in whole.roles.items()} == {
        "st/provider": 12,
        "st-mary/provider": 0,
        "office/server": 30,
    }
    assert whole.by_role()["provider"] == {"parties": 2, "messages": 3, "bytes": 37, "seconds": 0.0}


def test_a_long_runs_messages_are_noted_up_to_a_number_and_counted_beyond() -> None:
    transcript = Transcript()
    for _ in range(4_001):
        transcript.sent(A, C, "Kind", 1)
    assert (NOTED, len(transcript.course), transcript.messages) == (4_000, 4_000, 4_001)


def test_each_partys_result_has_what_was_released_to_it() -> None:
    learned = {
        A: Learned({"mean": 1, "scores": {"st": np.ones(1)}}),
        B: Learned({"mean": 1, "scores": {"st-mary": np.ones(2)}}),
        C: Learned({}, {"covariance": np.ones((2, 2))}),
    }
    outputs = joined(learned)
    assert sorted(outputs["scores"]) == ["st", "st-mary"]
    run = Run(Result(pppca().study, outputs, costs(), None, "booked"), learned)
    found = run.by_party
    assert sorted(found) == ["st", "st-mary"]
    assert list(found["st"]["scores"]) == ["st"]
    assert list(found["st-mary"]["scores"]) == ["st-mary"]
    assert list(found["st"].transcript.roles) == ["st/provider"]
    assert found["st"].booked == "booked"


def test_what_roles_learned_is_said_without_its_values() -> None:
    values = np.array([[12345.678]])
    run = Run(Result(pppca().study, {}, costs()), {A: Learned({"mean": values}, {"sum": values})})
    for text in (repr(run.learned), run.learned._repr_html_(), repr(run.learned[A])):
        assert "12345" not in text
        assert "mean" in text


@pytest.mark.parametrize(
    ("with_ledger", "private", "exact"),
    [
        ((0, 1, 2, 3), "booked in the ledger", "booked as exact"),
        ((), "no ledger: nothing booked", None),
        ((0, 1), "no ledger of hospital-2, hospital-3: nothing booked", None),
    ],
)
def test_it_is_said_where_a_run_was_booked(
    tmp_path: Path, with_ledger: tuple[int, ...], private: str, exact: str | None
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    for example, said in ((private_pppca(), private), (pppca(n_islands=4), exact)):
        own = {
            name: Own(island, ledger if k in with_ledger else None)
            for k, (name, island) in enumerate(example.islands.items())
        }
        assert booked(example.study, own) == said
    assert booked(pppca().study, {}) is None
    published = EXAMPLES["dpdpca-paper"]()
    assert booked(published.study, published.own) == "nothing is promised, so nothing was booked"
