"""The review says what will happen: checked against what does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, dpdpca, private_pppca, privatelocal, sfpca_scores

from atoll.data.island import Island
from atoll.errors import ParameterError
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import GaussianCost
from atoll.protocols import resolve
from atoll.protocols.own import owned
from atoll.report.assessment import as_markdown
from atoll.review.budget import AccountReview, review_exact, review_privacy
from atoll.review.study import Guess, count_columns, review_file, review_study
from atoll.runtime.execute import run_study
from atoll.runtime.studies import open_study
from atoll.study.model import Local, Party, Study

EVERYTHING = {
    "components": ("provider", "consumer"),
    "explained_variance": ("provider", "consumer"),
    "n_samples": ("consumer",),
    "scores": ("consumer",),
}


def a_study(n_islands: int = 3, *, together: bool = False, **fields: Any) -> Study:
    others = (
        (Party("office", ("server", "consumer")),)
        if together
        else (Party("office", ("server",)), Party("lab", ("consumer",)))
    )
    described: dict[str, Any] = {
        "name": "example",
        "protocol": "pppca",
        "parties": tuple(Party(f"p{i}", ("provider",)) for i in range(n_islands)) + others,
        "parameters": {"n_components": 3},
        "release": EVERYTHING,
    }
    return Study(**(described | fields))


def said_to(study: Study, role: str) -> str:
    reviewed = {r.role: r for r in review_study(study).roles}[role]
    return "\n".join((*reviewed.learns, *reviewed.caveats))


def test_two_providers_are_told_what_subtraction_shows() -> None:
    assert "learns the other's number of rows and mean" in said_to(a_study(2), "provider")
    assert "subtract" not in said_to(a_study(3), "provider")


def test_two_providers_are_told_of_deviations_and_covariance_where_these_can_be_subtracted() -> None:
    standardised = {"n_components": 3, "standardize": True}
    assert "its standard deviations" in said_to(a_study(2, parameters=standardised), "provider")
    assert "its standard deviations" not in said_to(a_study(2), "provider")
    assert "its covariance as far as" in said_to(a_study(2), "provider")
    untold = a_study(2, release={"explained_variance": ("consumer",)})
    assert "its covariance as far as" not in said_to(untold, "provider")


def test_who_receives_projections_is_told_what_else_they_show() -> None:
    said = said_to(a_study(), "consumer")
    assert "projections also show how many rows each island has" in said
    assert "projections and components together give back each row up to the dropped part" in said
    alone = said_to(a_study(release={"scores": ("consumer",)}), "consumer")
    assert "how many rows each island has" in alone
    assert "give back each row" not in alone
    assert "rows each island has" not in said_to(a_study(release={"components": ("consumer",)}), "consumer")


def test_trust_counts_islands_and_not_parties() -> None:
    """Five parties, three of them islands: one colluder is harmless, not three."""
    assert "one of the 3 islands works" in str(review_study(a_study()).trust)
    exponent = {"secure_sum": "paillier", "sum_options": {"encoding": "exponent"}}
    assert "The magnitude of every number is shown" in str(review_study(a_study(**exponent)).trust)
    assert "magnitude" not in str(review_study(a_study(secure_sum="paillier")).trust)


def test_all_receivers_of_an_output_are_named() -> None:
    outputs = {output.output: output.released_to for output in review_study(a_study()).outputs}
    assert outputs["components"] == ("p0/provider", "p1/provider", "p2/provider", "lab/consumer")
    assert outputs["scores"] == ("lab/consumer",)


def test_bytes_of_projections_are_eight_for_each_component_and_for_the_label() -> None:
    def per_row(**fields: Any) -> int:
        cost = review_study(a_study(**fields), 10).cost
        assert cost is not None
        return cost.projection_bytes_per_row

    assert per_row() == 24
    assert per_row(parameters={"n_components": 3, "label": "outcome"}) == 32
    assert per_row(parameters={"n_components": None}) == 80
    assert per_row(release={"components": ("consumer",)}) == 0


def test_owners_are_told_whether_the_number_of_rows_is_exact() -> None:
    def said(**parameters: Any) -> str:
        return said_to(dpdpca(**parameters).study, "owner")

    assert "the number of rows, noisy" in said()
    assert "the number of rows, exact" in said(neighbours="replace")
    published = said_to(dpdpca("paillier", calibration="paper").study, "owner")
    assert "the number of rows, exact" in published


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_epsilon_after_a_study_is_what_its_ledger_then_has(neighbours: str, tmp_path: Path) -> None:
    """An earlier release was for add/remove: beside one for replace it counts for two rows."""
    example, path = private_pppca(neighbours=neighbours), tmp_path / "ledger.db"
    with Ledger.create(path) as ledger:
        for name in example.islands:
            ledger.set_budget(name, 50.0, 1e-5)
            ledger.debit(name, f"earlier {name}", [GaussianCost(1.0)], neighbours="add-remove")
        reviewed = review_privacy(
            example.study, Local(identities={"hospital-0": "hospital-0"}, ledger=str(path))
        )
        run_study(example.study, owned(example.islands, ledger))
        spent = ledger.account("hospital-0")
    assert reviewed is not None
    (account,) = reviewed.accounts
    assert account.epsilon_after == pytest.approx(spent.epsilon, rel=1e-9)
    assert account.epsilon_before == pytest.approx(4.377, abs=1e-3)
    assert spent.neighbours == neighbours


@pytest.mark.parametrize(
    ("example", "least", "noise_for"),
    [
        (dpdpca(), 0, None),
        (dpdpca(), 1, None),
        (dpdpca(), 2, 1),
        (dpdpca(colluders=2), 2, None),
        (privatelocal(), 3, None),  # every owner's noise is enough alone
        (dpdpca("paillier", calibration="paper"), 0, None),
        (dpdpca("paillier", calibration="paper"), 1, 0),
    ],
)
def test_a_site_that_asks_for_more_noise_than_there_is_will_refuse(
    example: Example, least: int, noise_for: int | None
) -> None:
    said = f"this site asks for noise against at least {least} colluding owner(s), the study has {noise_for}"
    reviewed = review_privacy(example.study, Local(min_colluders=least))
    assert reviewed is not None
    assert reviewed.refusals == (() if noise_for is None else (said,))


def test_an_exact_study_is_said_to_be_booked_where_the_data_set_is_named(tmp_path: Path) -> None:
    local = Local(identities={"p1": "icu"}, ledger=str(tmp_path / "ledger.db"))
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        so_far = "p1 (data set 'icu'): booked as an exact release; so far, nothing was spent on it"
        assert review_exact(a_study(), local) == (so_far,)
        ledger.set_budget("icu", 1.0, exact=False)
        (refused,) = review_exact(a_study(), local)
        assert refused == "p1 will refuse: data set 'icu': its owner allows no exact release of it"


def test_a_pure_study_from_a_data_set_without_a_budget_is_told_at_delta_0(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.db").close()
    local = Local(identities={"island-0": "icu"}, ledger=str(tmp_path / "ledger.db"))
    reviewed = review_privacy(dpdpca(delta=None, epsilon=20.0).study, local)
    assert reviewed is not None
    (account,) = reviewed.accounts
    assert (account.budget, account.delta, account.epsilon_before) == (None, 0.0, 0.0)
    assert account.epsilon_after == pytest.approx(20.0)
    assert "has no budget" in str(account.refusal)
    text = as_markdown(review_study(dpdpca(delta=None, epsilon=20.0).study, local=local))
    assert "| island-0: icu | none set (at delta 0) | 0: nothing was spent on it |" in text


def test_an_epsilon_that_does_not_hold_is_not_written_as_a_number() -> None:
    review = review_study(private_pppca().study)
    assert review.privacy is not None
    account = AccountReview("north", "icu", 2.0, 0.0, None, None, False, "none holds", "nor then", "over")
    text = as_markdown(structs.replace(review, privacy=structs.replace(review.privacy, accounts=(account,))))
    assert "| north: icu | 2 (at delta 0) | none holds | nor then — **over** |" in text


@pytest.mark.parametrize("roles", [("provider", "consumer"), ("consumer", "provider")])
def test_a_party_that_brings_rows_too_is_said_to_know_them(roles: tuple[str, ...]) -> None:
    study = a_study(parties=(Party("p0", roles), Party("p1", ("provider",)), Party("office", ("server",))))
    (sentence,) = review_study(study).combined
    assert sentence.startswith(f"p0 plays {roles[0]} and {roles[1]}: ")
    assert sentence.endswith("what these learn, and knows its own rows")


def test_the_line_is_drawn_for_the_rows_that_are_known() -> None:
    study = EXAMPLES["sfpca"]().study
    assert "of 30 columns and 3,000 rows" in review_study(study, 30).determined[0]
    assert "of 30 columns and 60 rows" in review_study(study, 30, guess=Guess((10, 20, 30))).determined[0]


def test_projections_that_go_to_one_who_brings_no_records_leave_their_island() -> None:
    """Whatever outputs a protocol may come to have: their owners' share in them hides nobody else's."""
    review = review_study(sfpca_scores().study)
    others = [
        structs.replace(o, released_to=(*o.released_to, "lab/consumer")) if o.output == "scores" else o
        for o in review.outputs
    ]
    assert "to the island that holds the record only" in as_markdown(review)
    text = as_markdown(structs.replace(review, outputs=tuple(others)))
    assert "to the island that holds the record only" not in text
    assert "Projections of records are sent" in text


def test_the_assessment_says_that_exact_results_are_exact() -> None:
    exact = as_markdown(review_study(a_study()))
    assert "Results are exact. No noise is added" in exact
    assert "Projections describe single records" in exact
    private = {"n_components": 3, "epsilon": 1.0, "delta": 1e-5, "row_norm": 1.0}
    noisy = as_markdown(review_study(a_study(4, parameters=private, release={"components": ("consumer",)})))
    assert "Results are exact" not in noisy
    assert "Releases are differentially private: epsilon 1, delta 1e-05" in noisy
    assert "Projections describe" not in noisy


def test_the_server_is_said_to_learn_the_covariance() -> None:
    assert "full covariance matrix" in said_to(a_study(), "server")


def test_an_output_for_a_party_reaches_the_roles_that_can_receive_it() -> None:
    outputs = review_study(a_study(together=True, release={"scores": ("office",)})).outputs
    assert {o.output: o.released_to for o in outputs}["scores"] == ("office/consumer",)


def test_what_is_not_released_stays_inside() -> None:
    review = review_study(a_study(release={"components": ("p1",)}))
    outputs = {output.output: output for output in review.outputs}
    assert outputs["components"].released_to == ("p1/provider",)
    assert outputs["explained_variance"].released_to == ()
    (office,) = outputs["explained_variance"].known_to
    assert (office.address, office.whole) == ("office/server", True)
    assert "| nobody | office (server): all of it |" in as_markdown(review)


def test_a_party_with_two_roles_is_pointed_out() -> None:
    assert review_study(a_study()).combined == ()
    (sentence,) = review_study(a_study(together=True)).combined
    assert sentence.startswith("office plays server and consumer")
    assert sentence in as_markdown(review_study(a_study(together=True)))


@pytest.mark.parametrize(
    "release", [EVERYTHING, {"scores": ("consumer",)}, {"components": ("consumer",)}, {}]
)
@pytest.mark.parametrize(
    ("n_islands", "secure_sum", "options"),
    [
        (2, "shares", {}),
        (7, "shares", {}),
        (5, "masks", {}),
        (6, "masks", {"dropouts": 1}),
        (3, "paillier", {}),
        (4, "lattice", {"key": "collective"}),
        (3, "lattice", {"key": "server"}),
    ],
)
def test_the_expected_cost_is_what_a_run_costs(
    n_islands: int, secure_sum: str, options: dict[str, Any], release: dict[str, tuple[str, ...]]
) -> None:
    d, rows = 30, 20
    study = a_study(n_islands, secure_sum=secure_sum, sum_options=options, release=release)
    draw = np.random.default_rng(0)
    columns = [f"a column {j}" for j in range(d)]
    islands = {
        f"p{i}": Island.from_array(draw.normal(size=(rows, d)), name=f"p{i}", columns=columns)
        for i in range(n_islands)
    }
    cost = run_study(study, owned(islands)).result.transcript
    expected = review_study(study, d).cost
    assert expected is not None
    assert expected.messages == cost.messages
    assert expected.rounds == cost.rounds
    projections = expected.projection_bytes_per_row * rows * n_islands
    assert expected.bytes_total + projections == pytest.approx(cost.bytes, rel=0.05)
    sent = cost.of("p0/provider").bytes_sent - projections // n_islands
    assert expected.bytes_per_provider == pytest.approx(sent, rel=0.05)


def test_a_cost_needs_a_number_of_columns() -> None:
    review = review_study(a_study())
    assert review.cost is None
    assert "--columns" in (review.cost_missing or "")
    assert review_study(a_study(parameters={"n_components": 1}), 1).cost is not None
    with pytest.raises(ParameterError, match="at least one column"):
        review_study(a_study(), 0)


def test_columns_are_counted_without_the_label(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.zeros((2, 4)), columns=["a", "b", "c", "kind"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=np.zeros((2, 4)), feature_names=list(frame.columns))
    text = """
[study]
name = "x"
protocol = "pppca"
[parameters]
label = "kind"
[[party]]
name = "n"
role = "provider"
[[party]]
name = "s"
role = "provider"
[[party]]
name = "o"
role = "server"
[local]
data = { n = "missing.csv", s = "t.%s" }
"""
    path = tmp_path / "s.toml"
    for ending in ("csv", "parquet", "npz"):
        path.write_text(text % ending)
        assert count_columns(open_study(path)) == 3, ending
    path.write_text((text % "csv").replace('label = "kind"', 'columns = ["a", "b"]'))
    assert count_columns(open_study(path)) == 2
    path.write_text(text % "nothing")
    assert count_columns(open_study(path)) is None


def test_columns_of_all_islands_are_counted_where_each_holds_its_own(tmp_path: Path) -> None:
    for name, columns in (("n", ["a", "b"]), ("s", ["c"])):
        pd.DataFrame(np.zeros((2, len(columns))), columns=columns).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    text = """
[study]
name = "x"
protocol = "sfpca"
partition = "vertical"
[[party]]
name = "n"
role = "provider"
[[party]]
name = "s"
role = "provider"
[[party]]
name = "o"
role = "coordinator"
[local]
data = { n = "n.csv", s = "%s.csv" }
"""
    path = tmp_path / "s.toml"
    path.write_text(text % "s")
    assert count_columns(open_study(path)) == 3
    path.write_text(text % "missing")
    assert count_columns(open_study(path)) is None


def test_rows_are_counted_where_all_tables_are_at_hand_and_nobody_says_how_many(tmp_path: Path) -> None:
    for name in ("n", "s"):
        pd.DataFrame(np.zeros((2, 4)), columns=list("abcd")).to_csv(tmp_path / f"{name}.csv", index=False)
    text = """
[study]
name = "x"
protocol = "sfpca"
[parameters]
n_components = 3
[[party]]
name = "n"
role = "provider"
[[party]]
name = "s"
role = "provider"
[[party]]
name = "o"
role = "coordinator"
[release]
components = ["provider"]
[local]
data = { n = "n.csv", s = "s.csv" }
"""
    path = tmp_path / "s.toml"
    path.write_text(text)
    assert "of 4 columns and 4 rows" in review_file(open_study(path)).determined[0]
    assert "of 4 columns and 70 rows" in review_file(open_study(path), None, Guess((30, 40))).determined[0]
    path.write_text(text.replace(', s = "s.csv"', ""))
    assert "of 4 columns and 2,000 rows" in review_file(open_study(path)).determined[0]


def test_the_markdown_has_every_part_and_every_party() -> None:
    text = as_markdown(review_study(a_study(), 30))
    for heading in (
        "Purpose and responsibility",
        "How it is run",
        "Parties",
        "Data flows",
        "Who learns what",
        "Outputs",
        "Against whom this protects",
        "Safeguards",
        "Residual risks",
    ):
        assert f"\n## {heading}\n" in text
    for words in (
        "p0, p1, p2",
        "office",
        "lab",
        resolve(a_study()).digest,
        "colludes with no provider",
        "one of the 3 islands works together",
    ):
        assert words in text


def test_the_assessment_counts_who_brings_records_and_names_what_is_set() -> None:
    text = as_markdown(review_study(a_study()))
    assert "3 organisations compute a principal component analysis (PCA) over all their records" in text
    assert "of its own records only" not in text
    assert "`n_components` = 3" in text.partition("Parameters, ")[2].partition("\n")[0]
    assert "| provider | p0, p1, p2 | yes |" in text
    assert "| server | office | no |" in text
    assert "| consumer | lab | no |" in text


def test_the_assessment_leaves_out_nothing_that_a_role_learns_or_receives() -> None:
    review = review_study(a_study(), 30)
    text = as_markdown(review)
    for role in review.roles:
        for sentence in (*role.learns, *role.caveats):
            assert f"- {sentence}\n" in text
    assert "- nothing" not in text
    assert "| p0/provider, p1/provider, p2/provider, lab/consumer |" in text
    assert "plus 24 bytes for each record's projection" in text
    assert "Contributions are added exactly, as whole numbers of 192 bits" in text
    assert "Contributions are hidden on their way" not in text
    hidden = as_markdown(review_study(EXAMPLES["sfpca"]().study, 30))
    assert "Contributions are hidden on their way" in hidden
    assert "Contributions are added exactly" not in hidden
    assert "for each record's projection" not in hidden
    private = as_markdown(review_study(private_pppca().study))
    assert "Budgets of single islands: there is no ledger" in private


def test_the_assessment_says_how_contributions_travel() -> None:
    readable = "This method uses no secure sum: what an island sends can be read by its receiver."
    summed = "What islands contribute travels only inside a secure sum (`shares`)"
    said = {
        name: as_markdown(review_study(EXAMPLES[name]().study)) for name in ("meta", "sfpca", "sfpca-scores")
    }
    exact = as_markdown(review_study(a_study()))
    assert [readable in text for text in (exact, *said.values())] == [False, True, False, False]
    assert [summed in text for text in (exact, *said.values())] == [True, False, False, False]
    only = "For the range of the data there is a secure sum (`shares`)"
    assert [only in text for text in (exact, *said.values())] == [False, False, True, False]
    key = "travels encrypted under a collective key"
    assert [key in text for text in (exact, *said.values())] == [False, False, True, True]


def test_projections_are_called_data_about_single_records() -> None:
    assert "data about single records" in as_markdown(review_study(a_study()))
    quiet = as_markdown(review_study(a_study(release={"components": ("provider",)})))
    assert "No message is about a single record" in quiet


def test_a_name_cannot_break_the_markdown() -> None:
    study = a_study(name="x\n\n# Approved")
    assert "\n# Approved" not in as_markdown(review_study(study))


def test_a_baseline_without_messages_says_so() -> None:
    study = Study(
        name="alone",
        protocol="separate",
        parties=(Party("a", ("provider",)), Party("b", ("provider",))),
        release={"models": ("provider",)},
    )
    text = as_markdown(review_study(study))
    assert "of its own records only" in text
    assert "No message is sent" in text


def test_a_review_is_plain_data() -> None:
    plain = json.loads(json.dumps(review_study(a_study(), 30).to_plain()))
    assert plain["cost"]["columns"] == 30
    assert plain["roles"][0]["parties"] == ["p0", "p1", "p2"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_protocol_can_be_reviewed(example: str) -> None:
    study = EXAMPLES[example]().study
    review = review_study(study, 4)
    assert all(role.learns or role.caveats for role in review.roles)
    text = as_markdown(review)
    for party in study.parties:
        assert party.name in text
