"""Each output reaches those whom the study names: tried one output and one receiver at a time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import Example, dpdpca, meta, pppca, private_pppca, separate

import atoll
from atoll.codec import Decoder, Message
from atoll.errors import AtollError, StudyError
from atoll.protocols import check_study, protocol_of
from atoll.protocols.pca.pppca.ellipses import Ellipse
from atoll.protocols.pca.pppca.protocol import JointMean, Transfer
from atoll.protocols.pca.released import Model, Projection, SampleCount, Variances
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Party

OUTPUT_OF = {Model: "components", Transfer: "components", Variances: "explained_variance"}
OUTPUT_OF |= {SampleCount: "n_samples", Projection: "scores", Ellipse: "ellipses"}


class Released(Observer):
    """Who was sent which output."""

    def __init__(self, example: Example) -> None:
        self._decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
        self.sent_to: set[tuple[str, str]] = set()

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        output = OUTPUT_OF.get(type(self._decoder.decode(data)))
        if output:
            self.sent_to.add((output, str(receiver)))


def with_consumers(example: Example, release: dict[str, tuple[str, ...]]) -> Example:
    """The example with a second consumer, and these releases alone."""
    second = (*example.study.parties, Party("auditor", ("consumer",)))
    return Example(structs.replace(example.study, parties=second, release=release), example.islands)


CASES: list[tuple[str, dict[str, tuple[str, ...]]]] = [
    ("components", {"components": ("consumer",)}),
    ("components", {"components": ("auditor",)}),
    ("explained_variance", {"explained_variance": ("auditor",)}),
    ("n_samples", {"n_samples": ("auditor",)}),
    ("scores", {"scores": ("auditor",)}),
]


@pytest.mark.parametrize(
    ("build", "output", "release"),
    [
        (build, *case)
        for build in (pppca, private_pppca, meta)
        for case in CASES
        if build is pppca or case[0] != "scores"  # which only PPPCA without an epsilon releases
    ],
)
def test_an_output_is_sent_to_whom_the_study_names_and_to_nobody_else(
    build: Any, output: str, release: dict[str, tuple[str, ...]]
) -> None:
    example = with_consumers(build(), release)
    tap, protocol = Released(example), protocol_of(example.study.protocol)
    LocalEngine().run(protocol, example.study, example.own, observer=tap)
    named = {str(address) for address in example.study.receivers(output)}
    sent = {who for what, who in tap.sent_to if what == output}
    assert sent == named
    # Scores are computed by providers, who need the components for that; nothing else is sent to anybody.
    others = {(what, who) for what, who in tap.sent_to if what != output}
    needed = {("components", str(a)) for a in example.study.who("provider")} if output == "scores" else set()
    assert others == needed


def test_a_provider_is_named_by_its_party() -> None:
    example = pppca()
    study = structs.replace(example.study, release={"components": ("hospital-1",)})
    tap = Released(Example(study, example.islands))
    LocalEngine().run(protocol_of("pppca"), study, example.own, observer=tap)
    assert tap.sent_to == {("components", "hospital-1/provider")}


@pytest.mark.parametrize("build", [meta, separate])
@pytest.mark.parametrize("parameter", [{"epsilon": 1.0}, {"delta": 1e-5}, {"row_norm": 1.0}])
def test_a_baseline_takes_no_epsilon_that_it_does_not_keep(build: Any, parameter: dict[str, Any]) -> None:
    example = build()
    study = structs.replace(example.study, parameters={**example.study.parameters, **parameter})
    with pytest.raises(StudyError, match=f"{next(iter(parameter))} cannot be used (with|in a study without)"):
        check_study(protocol_of(study.protocol), study)


def test_noisy_numbers_do_not_travel_with_clear_exponents() -> None:
    """Every owner's magnitude would be shown alone, with its own share of noise only."""
    study = dpdpca("paillier", {"encoding": "exponent"}).study
    with pytest.raises(StudyError, match="encoding='exponent' shows the magnitude"):
        check_study(protocol_of("dpdpca"), study)
    check_study(protocol_of("dpdpca"), dpdpca("paillier").study)


def test_the_sum_of_one_island_is_that_island() -> None:
    with pytest.raises(AtollError, match="at least 2 islands, got 1"):
        atoll.secure_sum([[1.0, 2.0]])


def test_the_joint_mean_is_the_only_number_that_every_provider_is_sent() -> None:
    """Whatever the study releases to consumers: providers see n and the mean, nothing else of the sums."""
    example = with_consumers(pppca(), {"explained_variance": ("consumer",)})
    kinds: set[type] = set()
    decoder = Decoder[Message](protocol_of("pppca").all_messages(example.study))

    class Tap(Observer):
        def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
            if receiver.role == "provider" and sender.role == "server":
                kinds.add(type(decoder.decode(data)))

    LocalEngine().run(protocol_of("pppca"), example.study, example.own, observer=Tap())
    assert {kind.__name__ for kind in kinds} == {"AgreedColumns", JointMean.__name__}
