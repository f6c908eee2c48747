"""What ``atoll review`` predicts for SF-PCA against what then happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.support.examples import (
    Example,
    private_sfpca,
    sfpca,
    sfpca_columns_scores,
    sfpca_scores,
    sfpca_standardised,
    sfpca_standardised_scores,
)

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import ParameterError
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.disclosure import learns
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.protocols.pca.sfpca.parameters import MAX_PROVIDERS
from atoll.protocols.pca.sfpca.planner import Counted, expect
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import Inputs, direct, joint_rotation
from atoll.protocols.pca.sfpca.recipes.strict import strict
from atoll.review.study import review_study
from atoll.runtime.engine import Observer
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Study


def rows_of(example: Example) -> tuple[int, ...]:
    return tuple(island.n_rows for island in example.islands.values())


def longer(example: Example, *rows: int) -> Example:
    """The same study on tables of so many rows, which repeat."""
    tables = {}
    for (name, island), n in zip(example.islands.items(), rows, strict=True):
        table = island.features(island.columns)
        tables[name] = pd.DataFrame(np.resize(table, (n, table.shape[1])), columns=list(island.columns))
    return Example(example.study, as_islands(tables))


@pytest.mark.parametrize(
    "example",
    [
        sfpca(),
        sfpca_scores(),
        sfpca(recipe="strict"),
        sfpca_standardised(),
        sfpca_standardised_scores(),
        sfpca(recipe="strict", standardize=True),
        private_sfpca(),
        longer(sfpca_scores(), 2100, 1024, 30),
        longer(sfpca_standardised_scores(), 1100, 30, 30),
        longer(sfpca_columns_scores(), 5000, 5000, 5000),
    ],
    ids=[
        "direct",
        "scores",
        "strict",
        "standardised",
        "standardised-scores",
        "standardised-strict",
        "private",
        "scores in blocks",
        "standardised scores in blocks",
        "common scores in blocks",
    ],
)
def test_messages_and_rounds_are_exact_and_bytes_close(example: Example) -> None:
    expected = forecast(example.study, Circumstances(4, rows_of(example)))[0]
    transcript = run_study(example.study, example.own).result.transcript
    assert expected.messages == transcript.messages
    assert expected.rounds == transcript.rounds
    sent = max(cost.bytes_sent for role, cost in transcript.roles.items() if role.endswith("/provider"))
    assert sent / 1.25 < expected.bytes_per_provider < 1.25 * sent
    assert transcript.bytes / 1.25 < expected.bytes_total < 1.25 * transcript.bytes


def test_every_block_of_scores_takes_its_rounds_and_seconds() -> None:
    study = sfpca_scores().study
    one, *more = (forecast(study, Circumstances(30, (n,) * 3)) for n in (1024, 2048, 10 * 1024))
    for (expected, said), blocks in zip(more, (1, 9), strict=True):
        rounds = expected.rounds - one[0].rounds
        assert rounds == blocks * (more[0][0].rounds - one[0].rounds)
        assert said.seconds_apart - one[1].seconds_apart > rounds * 0.02
        assert expected.bytes_per_provider > one[0].bytes_per_provider * (1 + blocks / 20)


def test_no_bytes_of_a_record_are_added_to_what_the_forecast_counts() -> None:
    cost = review_study(sfpca_scores().study, 30).cost
    assert cost is not None
    assert cost.projection_bytes_per_row == 0


def test_the_prediction_for_a_large_study_takes_no_time() -> None:
    study = sfpca(n_components=5, bounds=255.0).study
    expected = expect(study, 717)
    assert 2e8 < expected.bytes_per_provider < 4e8
    assert 150 < expected.rounds <= 170


@pytest.mark.parametrize("recipe", ["direct", "default", "accurate"])
def test_as_many_providers_as_there_may_be_with_a_million_rows_fit_the_rings(recipe: str) -> None:
    machine = Counted([f"p{i}" for i in range(MAX_PROVIDERS)])
    inputs = Inputs(10**6, 60, machine.providers, "nobody", None, None)
    run = direct(machine, inputs, 20) if recipe == "direct" else strict(machine, inputs, 20, POLICIES[recipe])
    asyncio.run(run)
    assert machine.messages > MAX_PROVIDERS * 40


def test_rotations_cost_a_provider_the_logarithm_of_their_number() -> None:
    sent = []
    for count in (2, 4, 16):
        machine = Counted([f"p{i}" for i in range(count)])
        inputs = Inputs(100, 8, machine.providers, "nobody", None, None)
        asyncio.run(machine.finished(machine.beside(joint_rotation(machine, inputs, 8))))
        sent.append(machine.provider_bytes)
    assert sent[1] < 2.2 * sent[0]
    assert sent[2] < 4.4 * sent[0]


# ---- one decision: of the disclosure, the forecast and the run ----


def wide(n: int, m: int, **parameters: Any) -> Example:
    rows = np.random.default_rng(3).normal(size=(n, m))
    islands = as_islands(np.array_split(rows, 2))
    study = structs.replace(
        sfpca(bounds=8.0, **parameters).study, parties=parties(islands, "provider", "coordinator", "consumer")
    )
    return Example(study, islands)


class Sent(Observer):
    """The kinds of messages that left a role."""

    def __init__(self, study: Study) -> None:
        self.decoder = Decoder[Message](protocol_of("sfpca").all_messages(study))
        self.kinds: set[str] = set()

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        del sender, receiver
        self.kinds.add(type(self.decoder.decode(data)).__name__)


def given(example: Example) -> Circumstances:
    return Circumstances(len(next(iter(example.islands.values())).columns), rows_of(example))


def spectrum_said(example: Example) -> str:
    return "\n".join(d.learns for d in learns(example.study) if d.role == "coordinator")


def test_all_components_are_direct_in_disclosure_forecast_and_run() -> None:
    """With 10 rows and 60 columns, k = 10 alone would mean strict."""
    example = wide(10, 60, n_components=None)
    foreseen = forecast(example.study, given(example))[1].course
    assert foreseen[0].startswith("direct, because all components are asked for, and with them all 60")
    assert len(foreseen) == 1  # strict has no ten components to find
    said = spectrum_said(example)
    assert "all eigenvalues of the joint covariance" in said
    assert "certifies" not in said
    assert "first try" not in said
    result = run_study(example.study, example.own).result
    assert result["certificate"]["recipe"] == "direct"
    assert result["components"].shape == (10, 60)


def test_all_components_of_many_columns_are_refused_by_forecast_and_run_alike() -> None:
    example = wide(50, 300, n_components=None)
    refused = r"n_components=None \(all\) is for up to 256 columns, the tables have 300"
    for rows in (given(example).rows, ()):
        with pytest.raises(ParameterError, match=refused):
            forecast(example.study, Circumstances(300, rows))
    with pytest.raises(ParameterError, match=refused):
        run_study(example.study, example.own)


def test_a_strict_recipe_says_its_second_try_also_for_all_components() -> None:
    said = spectrum_said(sfpca(n_components=None, recipe="strict"))
    assert "all eigenvalues of the joint covariance" in said
    assert "one number that certifies the accuracy" in said
    assert "if the first try turns out not to be accurate enough" in said
    assert "first try" not in spectrum_said(sfpca(n_components=None, recipe="strict", retry=False))


@pytest.mark.parametrize(("columns", "also"), [(60, ", or recipe='direct'"), (300, "")])
def test_more_components_than_rows_can_have_are_refused_before_keys_exist(columns: int, also: str) -> None:
    example = wide(10, columns, n_components=10, recipe="strict")
    refused = "10 rows do not have 10 components: around their mean they span 9 dimensions at most"
    sent = Sent(example.study)
    with pytest.raises(ParameterError, match=refused) as error:
        LocalEngine().run(protocol_of("sfpca"), example.study, example.own, observer=sent)
    assert error.value.hint == f"n_components=9 or fewer{also}"
    assert sent.kinds == {"Columns", "AgreedColumns", "RowCount"}
    with pytest.raises(ParameterError, match=refused):
        forecast(example.study, given(example))
    forecast(example.study, Circumstances(columns))  # nobody knows the rows
    study = wide(10, columns, n_components=9, recipe="strict").study
    assert "strict" in forecast(study, given(example))[1].course[0]


def test_a_forecast_refuses_components_that_no_table_of_so_many_columns_has() -> None:
    with pytest.raises(ParameterError, match="n_components=5 must be between 1 and n_features=4"):
        expect(sfpca(n_components=5).study, 4)


# ---- the figures of the documentation ----

DOCS = Path(__file__).parents[4] / "docs"


def documented(page: str, row: str, column: str) -> str:
    """A cell of a page's table: of the row that begins so, in the column called so."""
    lines = (DOCS / page).read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {row} |"))
    top = next(i for i in range(at, 0, -1) if lines[i].startswith("| ---")) - 1
    cells = {i: [cell.strip() for cell in lines[i].split("|")] for i in (top, at)}
    return cells[at][cells[top].index(column)]


def six_islands(rows: int, **parameters: Any) -> tuple[Study, tuple[int, ...]]:
    """A study as ``atoll.PCA`` makes it, and the rows of each island."""
    islands = as_islands([np.zeros((1, 2))] * 6)
    released = ("components", "explained_variance", "n_samples", "certificate")
    study = structs.replace(
        sfpca(accept_determined=True, **parameters).study,
        parties=parties(islands, "provider", "coordinator", "consumer"),
        release=dict.fromkeys(released, ("provider", "consumer")),
    )
    return study, tuple(len(part) for part in np.array_split(np.arange(rows), 6))


EXPLAINED, STANDARDISED = "explanation/encrypted-pca.md", "protocols/sfpca.md"


@pytest.mark.parametrize(
    ("page", "row", "rows", "columns", "parameters"),
    [
        (EXPLAINED, "Wine 4,898 x 11, all 11", 4898, 11, {"n_components": 11}),
        (EXPLAINED, "MNIST 60,000 x 717, k = 5", 60_000, 717, {"n_components": 5, "bounds": [[0, 255]]}),
        (EXPLAINED, "Chr20-sized, 2,504 x 1,773 sites, k = 2", 2504, 1773, {"bounds": [[0, 2]]}),
        (STANDARDISED, "Wine, white, 4,898 x 11 | 11", 4898, 11, {"n_components": 11, "standardize": True}),
        (STANDARDISED, "Wine, white | 5", 4898, 11, {"recipe": "strict", "standardize": True}),
        (STANDARDISED, "Credit card | 5", 13_423, 30, {"recipe": "strict", "standardize": True}),
    ],
)
def test_the_rounds_in_the_documentation_are_the_planners(
    page: str, row: str, rows: int, columns: int, parameters: dict[str, Any]
) -> None:
    study, each = six_islands(rows, **parameters)
    assert documented(page, row, "rounds") == str(forecast(study, Circumstances(columns, each))[0].rounds)


def test_an_opened_sketch_takes_three_fifths_of_the_rounds() -> None:
    """As its page says, of MNIST with six islands."""
    study, rows = six_islands(60_000, n_components=5, bounds=[[0, 255]], recipe="strict")
    opened, _ = six_islands(60_000, n_components=5, bounds=[[0, 255]], recipe="opened-sketch")
    strict_, sketch = (forecast(one, Circumstances(717, rows))[0] for one in (study, opened))
    said = f"counts {sketch.rounds} rounds for MNIST instead of {strict_.rounds}, and"
    assert said in (DOCS / "protocols/sfpca.md").read_text()
    assert sketch.rounds <= 0.6 * strict_.rounds
    assert sketch.bytes_per_provider < 0.75 * strict_.bytes_per_provider


@pytest.mark.parametrize(
    ("recipe", "islands", "rounds"), [("strict", 2, 166), ("strict", 3, 166), ("opened-sketch", 3, 78)]
)
def test_rounds_of_a_run_of_sixty_columns_are_exact(recipe: str, islands: int, rounds: int) -> None:
    """Carriers wait for their masked totals; a planner that forgot it, or waited twice, would be off here."""
    table = np.random.default_rng(3).normal(size=(600, 60)) * np.geomspace(1, 0.1, 60)
    tables = as_islands(np.array_split(table, islands))
    study = structs.replace(
        sfpca(recipe=recipe, bounds=8.0).study,
        parties=parties(tables, "provider", "coordinator", "consumer"),
    )
    example = Example(study, tables)
    transcript = run_study(study, example.own).result.transcript
    assert forecast(study, given(example))[0].rounds == transcript.rounds == rounds


@pytest.mark.parametrize(("stated", "rounds"), [({}, 101), ({"least_deviation": 0.05}, 71)])
def test_what_a_study_states_of_its_columns_saves_rounds(stated: dict[str, Any], rounds: int) -> None:
    bounds = [[0.0, float(i)] for i in range(1, 12)]
    study, each = six_islands(4898, n_components=11, standardize=True, bounds=bounds, **stated)
    assert forecast(study, Circumstances(11, each))[0].rounds == rounds
