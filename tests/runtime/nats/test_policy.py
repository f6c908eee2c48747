"""A site's policy: what it refuses, and that it refuses nothing it was not told to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, dpdpca, pppca
from tests.support.sites import pinned

from atoll.errors import ParameterError
from atoll.runtime.nats.policy import Allow, Policy, Table, _texts, learners, read_policy, refusals
from atoll.study.model import Study

STUDY = pinned(pppca().study)
TABLE = Table(("age", "dose", "weight", "stay", "outcome"), 14)
ME = "hospital-0"


def refused(study: Study = STUDY, table: Table | None = TABLE, **allow: Any) -> list[str]:
    return refusals(Policy(allow=Allow(**allow)), study, ME, table)


def test_without_a_file_nothing_is_refused_and_nothing_approved(tmp_path: Path) -> None:
    policy = read_policy(tmp_path / "policy.toml")
    assert refusals(policy, STUDY, ME, TABLE) == []
    assert policy.approve.digests == ()


@pytest.mark.parametrize(
    ("allow", "says"),
    [
        ({"protocols": ("sfpca",)}, "the protocol pppca is not allowed"),
        ({"min_partners": 3}, "2 other parties bring data, at least 3 must"),
        ({"min_rows": 15}, "fewer than 15 rows"),
        ({"max_epsilon": 1.0}, "promises no epsilon"),
        ({"never_columns": ("dose",)}, "would use dose"),
        ({"never_columns": ("outcome",)}, "would use outcome"),
        ({"recipients": ("server", "hospital-1", "hospital-2")}, "consumer would learn something"),
    ],
)
def test_every_rule_refuses(allow: dict[str, Any], says: str) -> None:
    (said,) = refused(**allow)
    assert says in said


@pytest.mark.parametrize(
    "allow",
    [
        {"protocols": ("sfpca", "pppca")},
        {"min_partners": 2},
        {"min_rows": 14},
        {"never_columns": ("name",)},
        {"recipients": tuple(p.name for p in STUDY.parties if p.name != ME)},
        {"recipients": tuple(p.fingerprint for p in STUDY.parties)},
    ],
)
def test_no_rule_refuses_too_much(allow: dict[str, Any]) -> None:
    assert refused(**allow) == []


def test_columns_that_the_study_does_not_name_are_not_used() -> None:
    narrow = structs.replace(
        STUDY, parameters={**STUDY.parameters, "columns": ["age", "weight"], "label": None}
    )
    assert refused(narrow, never_columns=("dose", "outcome")) == []
    assert refused(narrow, never_columns=("age",)) != []
    labelled = structs.replace(narrow, parameters={**narrow.parameters, "label": "outcome"})
    assert refused(labelled, never_columns=("outcome",)) != []


@pytest.mark.parametrize(
    ("example", "parameters", "never"),
    [
        ("glm", {}, "stay"),
        ("glm", {"weights": "dose2"}, "dose2"),
        ("least-squares-encrypted-rows", {}, "stay"),
        ("least-squares-encrypted", {"columns": ("age",)}, "stay"),
        ("align", {}, "person"),
        ("synthesis", {}, "ill"),
    ],
)
def test_a_column_is_used_as_whatever_a_study_uses_it(
    example: str, parameters: dict[str, Any], never: str
) -> None:
    """As a target it was overlooked, where the study names its columns."""
    built = EXAMPLES[example]()
    study = structs.replace(built.study, parameters={**built.study.parameters, **parameters})
    name, island = next(iter(built.islands.items()))
    table = Table(island.columns, island.n_rows)
    (said,) = refusals(Policy(allow=Allow(never_columns=(never,))), study, name, table)
    assert f"would use {never}" in said
    assert refusals(Policy(allow=Allow(never_columns=("salary",))), study, name, table) == []


def test_columns_that_a_schema_leaves_out_are_not_used() -> None:
    built = EXAMPLES["synthesis"]()
    name, island = next(iter(built.islands.items()))
    table = Table((*island.columns, "salary"), island.n_rows)
    assert refusals(Policy(allow=Allow(never_columns=("salary",))), built.study, name, table) == []


def test_whoever_sees_something_by_the_protocols_nature_is_a_recipient() -> None:
    """PPPCA's server is given no output, and learns mean and covariance."""
    assert "server" in learners(STUDY)
    (said,) = refused(recipients=("consumer", "hospital-1", "hospital-2"))
    assert said.startswith("server would learn something")


def test_epsilons_are_compared() -> None:
    private = pinned(dpdpca().study)
    epsilon = float(private.parameters["epsilon"])
    me = private.parties[0].name
    assert refusals(Policy(allow=Allow(max_epsilon=epsilon)), private, me, None) == []
    (said,) = refusals(Policy(allow=Allow(max_epsilon=epsilon / 2)), private, me, None)
    assert f"its epsilon is {epsilon:g}" in said
    colluders = int(private.parameters["colluders"])
    assert refusals(Policy(allow=Allow(min_colluders=colluders)), private, me, None) == []
    assert refusals(Policy(allow=Allow(min_colluders=colluders + 1)), private, me, None) != []


def test_an_epsilon_that_nothing_promises_is_none() -> None:
    """A published form has an epsilon in its words and noise that does not keep it."""
    for name in ("dpdpca-paper", "synthesis-published"):
        study = pinned(EXAMPLES[name]().study)
        (said,) = refusals(Policy(allow=Allow(max_epsilon=1e9)), study, study.parties[0].name, None)
        assert said == "it promises no epsilon, and 1e+09 is the most"


def test_a_column_is_used_where_a_schema_or_a_mapping_names_it() -> None:
    """As one of the table's columns, as a category, or as the key of what is said of it."""
    few = structs.replace(STUDY, parameters={**STUDY.parameters, "label": None, "columns": ("age",)})
    tabled = structs.replace(few, table=structs.replace(few.table, columns=("age", "stay")))
    sorted_ = structs.replace(few, table=structs.replace(few.table, categorical=("stay",)))
    assert refused(few, never_columns=("stay",)) == []
    for study in (tabled, sorted_):
        assert refused(study, never_columns=("stay",)) == ["it would use stay, which is never to be used"]
    texts = set(_texts({"bounds": {"stay": (0, 9)}, "schema": [{"of": {"dose": 1}}, "age"], "n": 3}))
    assert texts == {"bounds", "stay", "schema", "of", "dose", "age", "n"}


def test_a_file_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[allow]\nprotocols = ["pppca"]\nmin_rows = 20\n[approve]\ndigests = ["ab"]\nrepeat = true\n'
    )
    policy = read_policy(path)
    assert policy.allow.protocols == ("pppca",)
    assert policy.allow.min_rows == 20
    assert policy.approve.repeat
    for text, says in (
        ("[alow]", "no table"),
        ("[allow]\nmin_row = 3", "has no 'min_row'"),
        ("[allow]\nmin_rows = -1", "min_rows"),
        ("[allow", "not valid TOML"),
    ):
        path.write_text(text)
        with pytest.raises(ParameterError, match=says):
            read_policy(path)
