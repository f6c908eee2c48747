"""The study itself: its digest covers every field, and nothing changes it later."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import pppca

from atoll.errors import StudyError
from atoll.protocols import check_study, protocol_of
from atoll.study.address import Address
from atoll.study.model import Assessment, Guards, Party, Study, TablePlan

STUDY = Study(
    name="icu",
    parties=(Party("st-mary", ("provider",)), Party("north", ("provider",)), Party("office", ("server",))),
    protocol="pppca",
    secure_sum="masks",
    sum_options={"dropouts": 0},
    parameters={"n_components": 2},
    release={"components": ("provider",)},
)

OTHER: dict[str, Any] = {
    "name": "icu-2",
    "parties": (*STUDY.parties[:2], Party("elsewhere", ("server",))),
    "protocol": "meta",
    "analysis": "sum",
    "secure_sum": "shares",
    "partition": "vertical",
    "sum_options": {"dropouts": 1},
    "parameters": {"n_components": 3},
    "release": {"components": ("provider", "office")},
    "version": 2,
    "assessment": Assessment(purpose="another"),
    "table": TablePlan(missing="drop"),
    "guards": Guards(min_rows=10),
}


def test_every_field_of_a_study_is_tried() -> None:
    assert set(OTHER) == set(Study.__struct_fields__)


@pytest.mark.parametrize("field", OTHER)
def test_whatever_changes_needs_a_new_approval(field: str) -> None:
    assert structs.replace(STUDY, **{field: OTHER[field]}).digest != STUDY.digest


@pytest.mark.parametrize(
    "party",
    [Party("office", ("server", "consumer")), Party("office", ("server",), "a fingerprint")],
    ids=["roles", "fingerprint"],
)
def test_so_does_another_role_or_key_of_a_party(party: Party) -> None:
    assert structs.replace(STUDY, parties=(*STUDY.parties[:2], party)).digest != STUDY.digest


def test_the_digest_is_pinned() -> None:
    """Islands compare digests across versions: one that changes by itself must be noticed."""
    assert STUDY.digest == "d9caaec4773bfba661f03670cb50fda60c298dc79dc75a0c292bf272dffa96bb"


def test_equal_studies_have_one_digest_whatever_the_order_of_their_keys() -> None:
    turned = structs.replace(STUDY, parameters={"standardize": True, "n_components": 2})
    other = structs.replace(STUDY, parameters={"n_components": 2, "standardize": True})
    assert turned.digest == other.digest
    assert pickle.loads(pickle.dumps(STUDY)).digest == STUDY.digest  # noqa: S301
    assert copy.deepcopy(STUDY).digest == STUDY.digest


@pytest.mark.parametrize("field", ["sum_options", "parameters", "release"])
def test_a_study_cannot_be_changed_after_its_digest_was_taken(field: str) -> None:
    given: dict[str, Any] = dict(OTHER[field])
    study = structs.replace(STUDY, **{field: given})
    before = study.digest
    with pytest.raises(TypeError):
        getattr(study, field)["more"] = ("consumer",)
    given["more"] = ("consumer",)
    assert study.digest == before


def test_an_output_goes_to_the_roles_and_parties_that_are_named_and_to_no_other() -> None:
    study = structs.replace(STUDY, release={"components": ("provider",), "explained_variance": ("office",)})
    st_mary, north, office = (Address(p.name, p.roles[0]) for p in study.parties)
    assert study.receivers("components") == (st_mary, north)
    assert study.receivers("explained_variance") == (office,)
    assert study.receivers("scores") == ()


def test_a_name_is_the_whole_name() -> None:
    """Not its beginning, nor a longer one."""
    study = structs.replace(
        STUDY,
        parties=(Party("north", ("provider",)), Party("north-clinic", ("provider",)), *STUDY.parties[2:]),
        release={"components": ("north",), "scores": ("north-clinic",), "explained_variance": ("provide",)},
    )
    north, clinic = Address("north", "provider"), Address("north-clinic", "provider")
    assert study.receivers("components") == (north,)
    assert study.receivers("scores") == (clinic,)
    assert study.receivers("explained_variance") == ()


def test_two_players_of_a_single_role_are_none() -> None:
    twice = structs.replace(STUDY, parties=(*STUDY.parties, Party("second", ("server",))))
    with pytest.raises(StudyError, match="needs one server, it names 2"):
        twice.the("server")
    with pytest.raises(StudyError, match="needs exactly one server, the study names 2"):
        check_study(protocol_of("pppca"), twice)
    with pytest.raises(StudyError, match="needs one consumer, it names 0"):
        STUDY.the("consumer")


@pytest.mark.parametrize("roles", [("provider", "server"), ("server", "provider")])
def test_roles_that_must_stay_apart_are_not_one_partys(roles: tuple[str, ...]) -> None:
    """A server that is a provider too has a total from which it takes its own rows."""
    parties = (*STUDY.parties[:2], Party("office", roles))
    with pytest.raises(StudyError, match="party 'office' cannot be both provider and server"):
        check_study(protocol_of("pppca"), structs.replace(STUDY, parties=parties))


def test_a_protocol_does_its_own_analysis() -> None:
    with pytest.raises(StudyError, match="pppca does not do the analysis 'sum'"):
        check_study(protocol_of("pppca"), structs.replace(STUDY, analysis="sum"))


@pytest.mark.parametrize("name", ["", "  ", "a/b", "st-mary/server", "st\u200bmary", "line\nbreak"])
def test_names_that_could_be_taken_for_others_are_refused(name: str) -> None:
    example = pppca()
    renamed = (Party(name, ("provider",)), *example.study.parties[1:])
    with pytest.raises(StudyError, match="a party cannot be called"):
        check_study(protocol_of("pppca"), structs.replace(example.study, parties=renamed))


@pytest.mark.parametrize("roles", [("provider",), ("provider", "consumer"), ("consumer", "provider")])
def test_a_party_called_like_a_role_plays_that_role_alone(roles: tuple[str, ...]) -> None:
    """Else what is released to consumers reaches it as a provider too."""
    example = pppca()
    named = (*example.study.parties[:-1], Party("consumer", roles))
    with pytest.raises(StudyError, match="called 'consumer', like a role, only if it has no other role"):
        check_study(protocol_of("pppca"), structs.replace(example.study, parties=named))


def test_what_a_secure_sum_cannot_do_is_refused_before_anybody_approves() -> None:
    example = pppca("masks", {"dropouts": 3}, 4)
    with pytest.raises(StudyError, match="4 contributors cannot lose 3"):
        check_study(protocol_of("pppca"), example.study)
