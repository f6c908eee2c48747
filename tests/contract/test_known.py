"""What a review says of who knows an output is what roles know when a run has ended."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example

from atoll.errors import NotReleased
from atoll.protocols import protocol_of
from atoll.review.study import review_study
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.result import Result, not_released
from atoll.runtime.transcript import Transcript

NAMES = [
    *("meta", "separate", "privatelocal", "summation-shares", "sfpca-scores", "sfpca-private"),
    *("sfpca-columns-scores", "sfpca-encrypted", "pppca-shares", "pppca-masks-dropouts", "pppca-private"),
    *("sfpca-threshold", "sfpca-threshold-encrypted", "synthesis", "synthesis-marginal", "glm", "kmeans"),
    *("least-squares", "classifier", "describe", "align", "gradient-descent", "kmeans-columns"),
    *("least-squares-columns", "classifier-columns", "least-squares-encrypted", "synthesis-published"),
    *("pppca-private-pairs", "dpdpca-shares", "dpdpca-paper", "dpdpca-pairs", "sfpca", "pppca-ellipses"),
]
RELEASES_NOTHING = [
    f"{name}, nothing released" for name in ("sfpca", "pppca-shares", "pppca-private", "meta", "synthesis")
]

FROM_AGREEMENT = {"columns", "islands"}
"""What roles agree on before anything is computed; they do not list it among what they learned."""
CALLED_OTHERWISE = {"private_centre": "mean"}


@cache
def example(name: str) -> Example:
    built = EXAMPLES[name.split(",")[0]]()
    if "," in name:
        built = built._replace(study=structs.replace(built.study, release={}))
    return built


@pytest.mark.parametrize("name", [*NAMES, *RELEASES_NOTHING])
def test_the_outputs_table_says_who_knows_what_at_the_end(name: str) -> None:
    study, protocol = example(name).study, protocol_of(example(name).study.protocol)
    said: dict[str, set[str]] = {str(address): set() for address in study.addresses()}
    for output in review_study(study).outputs:
        for address in output.released_to:
            said[address] |= set(protocol.outputs[output.output].values)
        for knower in output.known_to:
            said[knower.address] |= set(knower.values)
    values = {value for output in protocol.outputs.values() for value in output.values}
    for address, learned in LocalEngine().run(protocol, study, example(name).own).learned.items():
        known = {CALLED_OTHERWISE.get(value, value) for value in (*learned.outputs, *learned.inherent)}
        unsaid = (known & values) - said[str(address)]
        assert unsaid <= FROM_AGREEMENT, f"{address} knows {unsaid}, and nobody is told"
        # What follows from projections (how many rows there are) is counted by nobody's role.
        follows = FROM_AGREEMENT | ({"n_samples"} if "scores" in learned.outputs else set())
        # Labels and the statement of the noise come along where there are any.
        along = {"labels", "noise"}
        assert said[str(address)] - known <= follows | along, f"{address} is said to know more"


def test_numbers_that_all_see_are_not_said_to_stay_with_one() -> None:
    """SF-PCA opens the spectrum to every provider and the coordinator, released or not."""
    study = example("sfpca, nothing released").study
    outputs = {output.output: output for output in review_study(study).outputs}
    everybody = {str(a) for role in ("provider", "coordinator") for a in study.who(role)}
    for name in ("n_samples", "certificate", "explained_variance"):
        assert {knower.address for knower in outputs[name].known_to if knower.whole} == everybody
    assert not [one for one in outputs["components"].known_to if "components" in one.values]


def test_the_error_names_those_whom_the_table_names() -> None:
    study = example("sfpca, nothing released").study
    error = not_released(study, "n_samples")
    for address in (*study.who("provider"), *study.who("coordinator")):
        assert address.party in error.message
    assert "consumer" not in error.message
    assert "nobody knows it" in not_released(study, "components").message
    with pytest.raises(NotReleased, match="nobody knows it"):
        Result(study, {}, Transcript())["components"]
