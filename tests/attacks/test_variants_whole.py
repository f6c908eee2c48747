"""Lies of every kind in every form of SF-PCA, and variants that meet the code as it is put together.

A coordinator changes the last message of one kind that it sends, in the smallest way that the message's
type lets through, for one provider. Whatever the form, the run must end before an output leaves anybody. The
two forms of hundreds of rounds are lied to in the kinds that come last: the others are compared there by the
same lines, at the same places, as in the short forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import summation
from tests.support.lying import lying
from tests.support.sfpca_runs import encrypted
from tests.support.taps import Tap, resumed, tapped

import atoll
from atoll.codec import Decoder, Message, encode
from atoll.crypto import products as go
from atoll.errors import AtollError, BudgetExceeded, MessageError, RunError, StudyError
from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import Release
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import PureCost
from atoll.protocols import protocol_of
from atoll.protocols.handshake import AgreedColumns, JoinedColumns
from atoll.protocols.pca.sfpca import messages as m
from atoll.runtime.inbox import Received
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.secure_sums.lattice import AddedInputs, OpeningShare
from atoll.study.address import Address
from atoll.study.model import Party

ROWS = np.random.default_rng(11).normal(size=(120, 6)) * [9, 6, 4, 2, 1, 1]

FORMS: dict[str, tuple[dict[str, Any], Callable[[], dict[str, np.ndarray]]]] = {
    "columns": (
        {"partition": "vertical", "bounds": 64.0},
        lambda: {"north": ROWS[:, :2], "south": ROWS[:, 2:4], "west": ROWS[:, 4:]},
    ),
    "standardised": (
        {"standardize": True, "bounds": 64.0},
        lambda: {"north": ROWS[:40], "south": ROWS[40:80], "west": ROWS[80:]},
    ),
    "private": (
        {"epsilon": 5.0, "delta": 1e-5, "row_norm": 20.0},
        lambda: {"north": ROWS[:40], "south": ROWS[40:80], "west": ROWS[80:]},
    ),
    "threshold": (
        {"threshold": 2, "bounds": 64.0},
        lambda: {"north": ROWS[:40], "south": ROWS[40:80], "west": ROWS[80:]},
    ),
    "strict": (
        {"recipe": "strict", "bounds": 64.0},
        lambda: {"north": ROWS[:40], "south": ROWS[40:80], "west": ROWS[80:]},
    ),
}


LONG = ("standardised", "strict")


def fit(form: str) -> Any:
    options, tables = FORMS[form]
    return atoll.PCA(2, protocol="sfpca", accept_determined="epsilon" not in options, **options).fit(tables())


def flipped(body: Any) -> bytes:
    data = bytearray(body)
    data[0] ^= 1
    return bytes(data)


def next_word(values: Any) -> np.ndarray:
    words = np.array(values)
    words.flat[0] += words.dtype.type(1)
    return words


LIES: dict[type[Message], Callable[[Any], Any]] = {
    mm.SessionSeed: lambda x: mm.SessionSeed((*x.seeds[:-1], flipped(x.seeds[-1]))),
    mm.AllKeyParts: lambda x: structs.replace(x, body=flipped(x.body)),
    mm.EncryptedMatrix: lambda x: structs.replace(x, body=flipped(x.body)),
    mm.SecondHalves: lambda x: structs.replace(x, body=flipped(x.body)),
    mm.MaskedTotal: lambda x: structs.replace(x, body=flipped(x.body)),
    mm.OpenedMatrix: lambda x: structs.replace(x, words=next_word(x.words)),
    mm.PublicNumbers: lambda x: structs.replace(x, values=-np.array(x.values)),
    m.RowCounts: lambda x: m.RowCounts((*x.n[:-1], x.n[-1] + 1)),
    AgreedColumns: lambda x: AgreedColumns(x.names[::-1], x.named),
    JoinedColumns: lambda x: JoinedColumns(
        x.names, x.widths[::-1] if len(set(x.widths)) > 1 else (*x.widths, 1), x.named
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_last_message_of_every_kind_is_checked_before_an_output_leaves(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_providers: list[tuple[type, Address]] = []

    def note(sender: Address, receiver: Address, message: Message) -> Message:
        if sender.role == "coordinator" and receiver.role == "provider":
            to_providers.append((type(message), receiver))
        return message

    with monkeypatch.context() as patched:
        lying(patched, note)
        fit(form)
    sent = Counter(to_providers)
    last_first = list(dict.fromkeys(kind for kind, _ in reversed(to_providers) if kind in LIES))
    assert {mm.SessionSeed, mm.AllKeyParts, mm.EncryptedMatrix, mm.SecondHalves, mm.MaskedTotal} <= set(
        last_first
    )
    for kind in last_first[:2] if form in LONG else last_first:
        whom = next(receiver for told, receiver in reversed(to_providers) if told is kind)
        left = told_last(kind, whom, sent[kind, whom], form, monkeypatch)
        assert left == 0, f"{form}: {kind.__name__} changed for {whom}, and {left} shares of outputs left"


def told_last(kind: type, whom: Address, times: int, form: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """A run in which the last message of a kind is another one; how many shares of outputs left."""
    seen = Counter[type]()

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        if sender.role == "coordinator" and receiver == whom and type(message) is kind:
            seen[kind] += 1
            return LIES[kind](message) if seen[kind] == times else message
        seen[type(message)] += sender.role == "provider"
        return message

    with monkeypatch.context() as patched:
        lying(patched, lie)
        with pytest.raises(AtollError):
            fit(form)
    assert seen[kind] == times
    return seen[mm.ReleasedShare] + seen[mm.DealtShare] + seen[mm.ReleasedPoint]


async def two_openings(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """A program that opens twice, with no product between."""
    own = None if inputs.moments is None else np.array([[3 << 10]])
    x = machine.private(None, own, (1, 1), 10, 4)
    square = await machine.product((x, x), fraction=10, bits=8, name="square")
    return [await machine.opened(square, smudge_bits=0) for _ in range(2)]


@pytest.mark.parametrize("whom", ["p1", None])
def test_a_second_opening_waits_for_the_comparison_of_the_first(
    whom: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [np.full((2, 2), 1.0 + i) for i in range(3)]
    results, _ = encrypted(two_openings, blocks)
    assert [round(float(x[0, 0])) for x in results["p0/provider"]] == [81, 81]
    opened = Counter[str]()

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        opened[sender.party] += isinstance(message, mm.OpenedShare)
        told = isinstance(message, mm.OpenedMatrix) and whom in (None, receiver.party)
        return LIES[mm.OpenedMatrix](message) if told else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="hub/coordinator"):
        encrypted(two_openings, blocks)
    assert max(opened.values()) == 1


async def opened_last(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
    """A program in which nothing but the last comparison follows an opening, and nothing else is new then."""
    own = None if inputs.moments is None else np.array([[3 << 10]])
    x = machine.private(None, own, (1, 1), 10, 4)
    square = await machine.product((x, x), fraction=10, bits=8, name="square")
    await machine.check(last=True)
    found = await machine.opened(square, smudge_bits=20)
    await machine.check(last=True)
    return found


def test_what_was_opened_last_is_compared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [np.full((2, 2), 1.0 + i) for i in range(3)]

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        told = isinstance(message, mm.OpenedMatrix) and receiver.party == "p1"
        return LIES[mm.OpenedMatrix](message) if told else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="hub/coordinator"):
        encrypted(opened_last, blocks)


def test_every_provider_smudges_with_a_seed_that_nobody_else_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise from what all know could be taken off again."""
    seeds: list[bytes] = []
    honest = go.smudge

    def noted(share: Any, bits: int, seed: bytes, domain: bytes) -> Any:
        seeds.append(seed)
        return honest(share, bits, seed, domain)

    monkeypatch.setattr(go, "smudge", noted)
    for _ in range(2):
        encrypted(opened_last, [np.full((2, 2), 1.0 + i) for i in range(3)])
    assert len(seeds) == 6
    assert len(set(seeds)) == 6  # in no two providers, and in no two runs of the same
    assert all(len(set(seed)) > 8 for seed in seeds)


def test_a_masked_total_of_a_step_to_come_is_compared_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The carrier keeps totals by their step: one that comes too early must not count as compared."""
    early: list[Message] = []
    released = Counter[bool]()

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        released[isinstance(message, mm.ReleasedShare)] += 1
        if isinstance(message, mm.MaskedTotal):
            early.append(message)
            return structs.replace(message, step=message.step + 1)
        return message

    lying(monkeypatch, lie)
    with pytest.raises(AtollError):
        fit("columns")
    assert early
    assert released[True] == 0


def test_a_contributor_run_again_opens_no_other_lattice_sum() -> None:
    """Its coin is recorded: whoever saw it could make another sum for the same points."""
    example = summation("lattice", {"key": "collective"}, 3)
    tap, address = tapped(example), Address("island-1", "contributor")
    decoder = Decoder[Message](protocol_of("sum").all_messages(example.study))

    def other(event: Received) -> Received:
        message = decoder.decode(event.data)
        if not isinstance(message, AddedInputs):
            return event
        return Received(event.sender, encode(structs.replace(message, carries=flipped(message.carries))))

    assert resumed(example, tap, address, example.own["island-1"])[1] == tap.outboxes[address]
    with pytest.raises(RunError, match="is not what the recorded run sent"):
        resumed(example, tap, address, example.own["island-1"], [other(e) for e in tap.received(address)])
    kinds = [type(decoder.decode(data)) for _, data in tap.outboxes[address]]
    assert kinds.count(OpeningShare) == 1


def test_a_run_that_ends_gives_back_its_own_reservation_and_no_other() -> None:
    """Else a short run frees the budget that a long one counts on, and a third spends it again."""
    with Ledger() as ledger:
        ledger.set_budget("cohort", 1.0)
        half = {"only": Spent.of([PureCost(0.5)])}
        long, short, third = (Release("cohort", name, half) for name in ("long", "short", "third"))
        ledger.reserve(long)
        ledger.reserve(short)
        ledger.give_back(short)
        assert ledger.account("cohort").reserved == 1
        ledger.reserve(third)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(Release("cohort", "fourth", half))
        ledger.settle(long, "only", "rows")
        ledger.settle(third, "only", "rows")
        assert ledger.account("cohort").epsilon == 1.0


def test_an_engine_runs_no_study_that_was_not_checked() -> None:
    """Whoever calls an engine by itself, past everything that resolves a study first."""
    example = summation("shares", {}, 3)
    first, second, *rest = example.study.parties
    study = structs.replace(
        example.study, parties=(Party(first.name, ("contributor", "receiver")), second, *rest[:-1])
    )
    tap = Tap()
    with pytest.raises(StudyError):
        LocalEngine().run(protocol_of("sum"), study, example.own, observer=tap)
    assert not tap.outboxes
