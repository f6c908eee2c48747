"""What every role of the paper variant receives is what its review lists, and outputs alone are opened."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pandas as pd
import pytest
from msgspec import structs
from tests.support import paper_runs
from tests.support.examples import Example, sfpca_paper
from tests.support.taps import Tap, tapped

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols import handshake, protocol_of
from atoll.protocols.pca.released import SampleCount
from atoll.protocols.pca.sfpca import messages as common
from atoll.protocols.pca.sfpca.paper import shared
from atoll.protocols.pca.sfpca.paper.messages import Estimates, VarianceUnit
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.slots import messages as m
from atoll.secret_matrices.slots import steps
from atoll.secret_numbers import messages as numbers
from atoll.secret_numbers import supplies
from atoll.secret_numbers.field import elements, uniform
from atoll.secret_numbers.machine import Triples
from atoll.study.address import Address
from atoll.study.model import Party, Study

FORMS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a threshold": {"threshold": 2},
    "both": {"threshold": 2, "paper": {"verify": True}},
    "rows, QR^T": {"paper": {"method": "seq", "p": 2}},
    "rows, DQR^T": {"paper": {"qr": "dqr", "p": 2}},
    "rows, verified": {"paper": {"qr": "dqr", "p": 3, "verify": True}},
    "on shares": {"paper": {"nonlinear": "lss", "p": 1}, "dealer": True},
    "on shares, verified": {"paper": {"nonlinear": "lss-op", "p": 1, "verify": True}, "dealer": True},
    "on shares, a threshold": {"threshold": 2, "paper": {"nonlinear": "lss", "p": 1}, "dealer": True},
    "on shares of their own": {"paper": {"nonlinear": "lss-op", "p": 1}},
    "bounds": {"bounds": 64.0},
    "scores": {"release": {"scores": ("provider",)}},
    "scores of rows": {"release": {"scores": ("provider",)}, "paper": {"method": "seq", "p": 3}},
    "columns": {"columns": True},
}
OPENED = (m.SwitchedRow, mm.ReleasedPoint)
CLEAR = (
    *(handshake.Columns, handshake.AgreedColumns, handshake.JoinedColumns, common.RowCount, common.RowCounts),
    *(common.DataRange, common.Names, common.Finished, SampleCount, VarianceUnit, Estimates, numbers.Wanted),
)
IN_THE_CLEAR = {
    "provider": {"AgreedColumns", "JoinedColumns", "RowCounts", "DataRange", "Estimates"},
    "coordinator": {"Columns", "RowCount", "Estimates", "Finished"},
    "consumer": {"SampleCount", "RowCounts", "VarianceUnit", "Names"},
    "dealer": {"Wanted"},
}
PARTS = (m.RefreshPart, m.SwitchingPart, m.SharePart, m.OwnPart)
"""What is a function of a provider's key and of one ciphertext."""


class Sped(supplies.Joint):
    """Triples from a seed that all know, and the messages that Paillier takes, without its keys."""

    async def triples(self, party: Any, count: int) -> Triples:
        self.drawn = getattr(self, "drawn", 0) + 1
        parts = party.parties
        await party.net.broadcast(party.others, numbers.Factors(b"", b""))
        await party.net.gather(numbers.Factors, party.others)
        for address in party.others:
            await party.net.send(address, numbers.Supplied(b""))
        await party.net.gather(numbers.Supplied, party.others)
        place = parts.index(party.net.me)
        own = uniform(bytes(32), (len(parts), 3, count), "sped", self.drawn)
        a, b = (own[:, i].sum(axis=0) for i in range(2))
        own[0, 2] = a * b - own[1:, 2].sum(axis=0)
        return Triples(*(elements(own[place, i])[None] for i in range(3)))


def example(form: str) -> Example:
    given, changed = sfpca_paper(), dict(FORMS[form])
    if changed.pop("columns", False):
        return of_columns()
    dealt, release = changed.pop("dealer", False), changed.pop("release", None)
    paper = given.study.parameters["paper"] | changed.get("paper", {})
    study = structs.replace(given.study, parameters=given.study.parameters | changed | {"paper": paper})
    if release is not None:
        roles = parties(given.islands, "provider", "coordinator")
        study = structs.replace(study, release=release, parties=roles)
    if dealt:
        study = structs.replace(study, parties=(*study.parties, Party("trent", ("dealer",))))
    return Example(study, given.islands)


def of_columns() -> Example:
    """The paper's D.2, with the intervals of a simulation on all rows."""
    X, names = paper_runs.table(), ["age", "dose", "weight", "stay", "score"]
    islands = as_islands([pd.DataFrame(X[:, a:b], columns=names[a:b]) for a, b in ((0, 2), (2, 3), (3, 5))])
    told = paper_runs.agreed_intervals([X], 1, Algorithm(p=2, alpha=1, w=1), "seq")
    stated = {
        "scale": told.scale,
        "variances": list(told.variances),
        "places": {place: list(ends) for place, ends in told.of.items()},
        "stretches": {place: list(powers) for place, powers in told.stretches.powers.items()},
    }
    paper = {**sfpca_paper().study.parameters["paper"], "p": 2, "intervals": stated}
    study = Study(
        name="columns",
        protocol="sfpca-paper",
        partition="vertical",
        parties=parties(islands, "provider", "coordinator"),
        parameters={"accept_determined": True, "n_components": 1, "paper": paper},
        release=dict.fromkeys(("components", "explained_variance", "certificate"), ("provider",)),
    )
    return Example(study, islands)


def arrived(tap: Tap, built: Example, receiver: Address) -> list[Any]:
    decoder = Decoder[Message](protocol_of("sfpca-paper").all_messages(built.study))
    return [decoder.decode(event.data) for event in tap.received(receiver)]


class Run(NamedTuple):
    """A study, everything that moved, and which ciphertexts parts were made for, by how many."""

    built: Example
    tap: Tap
    asked: Counter[bytes]


def ran(form: str) -> Run:
    built, asked, marks = example(form), Counter[bytes](), steps.asked

    def noted(xs: Any) -> Any:
        found = marks(xs)
        asked.update(mark for mark, _ in found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "asked", noted)
        patch.setattr(shared, "Joint", Sped)
        return Run(built, tapped(built), asked)


@pytest.mark.parametrize("form", FORMS)
def test_what_moves_is_what_the_review_says(form: str) -> None:
    run = ran(form)
    nothing_arrives_that_the_review_does_not_list(form, run)
    in_the_clear_are_row_counts_intervals_names_and_units(form, run)
    no_ciphertext_has_two_parts(run)


def nothing_arrives_that_the_review_does_not_list(form: str, run: Run) -> None:
    built = run.built
    said = protocol_of("sfpca-paper").learns(built.study)
    for receiver in built.study.addresses():
        listed = {kind for one in said if one.role == receiver.role for kind in one.messages}
        messages = arrived(run.tap, built, receiver)
        sealed = {type(message) for message in messages} - listed
        # What travels to all alike, and what a secure sum of the range is made of, is listed by its protocol.
        assert {kind.__name__ for kind in sealed} <= {"Compared"}, receiver
        opened = [message for message in messages if isinstance(message, OPENED)]
        rows = sum(message.rows if isinstance(message, mm.ReleasedPoint) else 1 for message in opened)
        assert rows == due(built, receiver, form), (receiver, [type(x).__name__ for x in opened])


def in_the_clear_are_row_counts_intervals_names_and_units(form: str, run: Run) -> None:
    """All other messages are ciphertexts, parts of keys, shares, seeds or digests."""
    for receiver in run.built.study.addresses():
        messages = arrived(run.tap, run.built, receiver)
        clear = {type(message).__name__ for message in messages if isinstance(message, CLEAR)}
        assert clear <= IN_THE_CLEAR[receiver.role], receiver
        told = [x for x in messages if isinstance(x, Estimates)]
        assert len(told) <= int(form != "columns"), receiver
        if receiver.role == "dealer":
            assert {type(message) for message in messages} == {numbers.Wanted}


def no_ciphertext_has_two_parts(run: Run) -> None:
    """Neither of one kind nor of two: every provider made one for each half that parts are made from."""
    providers = run.built.study.who("provider")
    assert run.asked
    assert set(run.asked.values()) == {len(providers)}
    decoder = Decoder[Message](protocol_of("sfpca-paper").all_messages(run.built.study))
    sent = Counter[tuple[Any, ...]]()
    for sender in providers:
        for receiver, data in run.tap.outboxes[sender]:
            message: Any = decoder.decode(data)
            if isinstance(message, PARTS):
                owner = receiver if isinstance(message, m.OwnPart) else None
                sent[sender, message.step, message.place, owner] += 1
    assert set(sent.values()) == {1}
    # An owner's own part stays where it is.
    own = sum(key[3] is not None for key in sent) // (len(providers) - 1)
    assert len(sent) + own == sum(run.asked.values())


def due(built: Example, receiver: Address, form: str) -> int:
    """Rows that reach a receiver: tau, variances, components and their offsets, and no other."""
    study = built.study
    names = {"explained_variance": 1, "components": study.parameters["n_components"] + 1}
    of_outputs = sum(rows for name, rows in names.items() if study.releases(name, receiver))
    # The coordinator opens tau itself; of a dealt output, every other member sends its share.
    tau = 0 if receiver.role == "coordinator" else int(receiver.role == "provider")
    tau += int(receiver.role == "consumer" and study.releases("certificate", receiver))
    if "threshold" not in FORMS[form]:
        return tau + of_outputs
    others = len(study.who("provider")) - (receiver.role == "provider")
    return tau + others * of_outputs
