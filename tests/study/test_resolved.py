"""A study as it is approved: with every option that it leaves out filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, pppca

from atoll import secure_sums
from atoll.errors import StudyError
from atoll.protocols import PROTOCOLS, base, protocol_of, resolve
from atoll.protocols.pca.pppca.parameters import PPPCAParameters
from atoll.runtime.execute import run_study
from atoll.secure_sums.masks import MaskOptions
from atoll.study import model, tables


class OtherDefaults(PPPCAParameters, frozen=True):
    """As a later release might have them."""

    accept_determined: bool = True


class OtherMasks(MaskOptions, frozen=True):
    dropouts: int = 1


def test_a_changed_default_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was approved before it changed is not what would run after."""
    example = pppca()
    stated = {k: v for k, v in example.study.parameters.items() if k != "accept_determined"}
    study = structs.replace(example.study, parameters=stated)
    now = resolve(study).digest
    later = replace(protocol_of("pppca"), parameters=OtherDefaults)
    assert base.resolve(later, study).digest != now
    masked = structs.replace(study, secure_sum="masks", parties=pppca(n_islands=5).study.parties)
    before = resolve(masked).digest
    monkeypatch.setattr(secure_sums.METHODS["masks"], "options_type", OtherMasks)
    assert resolve(masked).digest != before


def test_another_version_of_the_protocol_needs_a_new_approval() -> None:
    study, later = pppca().study, replace(protocol_of("pppca"), version=3)
    approved = resolve(study)
    assert approved.version == 2
    assert base.resolve(later, study).digest != approved.digest
    with pytest.raises(StudyError, match="made for version 2 of pppca, which is now at 3"):
        base.resolve(later, approved)


def test_saying_a_default_changes_nothing() -> None:
    study = pppca("lattice").study
    said = structs.replace(study, sum_options={"key": "collective"})
    assert resolve(said).digest == resolve(study).digest
    assert resolve(said).digest != study.digest


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_resolved_study_stays_as_it_is(name: str) -> None:
    study = EXAMPLES[name]().study
    once = resolve(study)
    assert resolve(once) is once
    assert once.version == PROTOCOLS[study.protocol].version
    assert set(once.parameters) >= set(study.parameters)


def test_a_run_is_bound_to_the_resolved_study_and_reads_its_options_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[tuple[Any, ...]] = []

    def counted(table: Any, kind: Any, path: Any) -> Any:
        read.append(path)
        return tables.read_table(table, kind, path)

    monkeypatch.setattr(model, "read_table", counted)
    monkeypatch.setattr("atoll.protocols.private_options.read_table", counted)
    example = pppca("masks")
    result = run_study(example.study, example.own).result
    assert result.study == resolve(pppca("masks").study)
    # The last two are of the line above.
    assert read == [("parameters",), ("sum",), ("parameters",), ("sum",)]
