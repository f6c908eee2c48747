"""What every role of the paper variant receives is what its review lists, and outputs alone are opened."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import Example, sfpca_paper
from tests.support.taps import Tap, tapped

from atoll.codec import Decoder, Message
from atoll.protocols import protocol_of
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.slots import messages as m
from atoll.study.address import Address

FORMS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a threshold": {"threshold": 2},
    "both": {"threshold": 2, "paper": {"verify": True}},
}
OPENED = (m.SwitchedRow, mm.ReleasedPoint)


def example(form: str) -> Example:
    given = sfpca_paper()
    changed = FORMS[form]
    paper = given.study.parameters["paper"] | changed.get("paper", {})
    parameters = given.study.parameters | changed | {"paper": paper}
    return Example(structs.replace(given.study, parameters=parameters), given.islands)


def arrived(tap: Tap, built: Example, receiver: Address) -> list[Any]:
    decoder = Decoder[Message](protocol_of("sfpca-paper").all_messages(built.study))
    return [decoder.decode(event.data) for event in tap.received(receiver)]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_arrives_that_the_review_does_not_list(form: str) -> None:
    built = example(form)
    tap, protocol = tapped(built), protocol_of("sfpca-paper")
    said = protocol.learns(built.study)
    for receiver in built.study.addresses():
        listed = {kind for one in said if one.role == receiver.role for kind in one.messages}
        messages = arrived(tap, built, receiver)
        sealed = {type(message) for message in messages} - listed
        # What travels to all alike, and what a secure sum of the range is made of, is listed by its protocol.
        assert {kind.__name__ for kind in sealed} <= {"Compared"}
        opened = [message for message in messages if isinstance(message, OPENED)]
        rows = sum(message.rows if isinstance(message, mm.ReleasedPoint) else 1 for message in opened)
        assert rows == due(built, receiver, form), (receiver, [type(x).__name__ for x in opened])


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
