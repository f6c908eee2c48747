"""Row ids go along with projections when the study names them, in the order of the rows, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.cli.conftest import folder
from tests.cli.example import STUDY
from tests.support.examples import Example, meta, pppca
from tests.support.running import atoll

from atoll.data.island import as_islands
from atoll.errors import DataError, MessageError, StudyError
from atoll.protocols import check_study, protocol_of
from atoll.protocols.pca.released import Projection, joined_scores
from atoll.review.study import review_study
from atoll.runtime.execute import run_study
from atoll.runtime.studies import open_study, read_own

__all__ = ["folder"]

NAMED = STUDY.replace('label = "kind"', 'label = "kind"\nrow_ids = "patient"')


def with_ids(ids: dict[str, list[object]] | None = None) -> Example:
    example = pppca()
    frames = {name: island.frame() for name, island in example.islands.items()}
    for name, frame in frames.items():
        frame["patient"] = (ids or {}).get(name) or [f"{name}-{i}" for i in range(len(frame))]
    study = structs.replace(example.study, parameters={**example.study.parameters, "row_ids": "patient"})
    return Example(study, as_islands(frames))


def test_ids_reach_the_consumer_row_by_row_and_change_no_number() -> None:
    plain, named = (run_study(e.study, e.own).result for e in (pppca(), with_ids()))
    for island, scores in plain["scores"].items():
        assert np.array_equal(scores, named["scores"][island])
        assert named["ids"][island] == [f"{island}-{i}" for i in range(len(scores))]
    assert np.array_equal(plain["components"], named["components"])
    assert plain["ids"] is None


def test_ids_reach_nobody_else() -> None:
    example = with_ids()
    for address, learned in run_study(example.study, example.own).learned.items():
        assert ("ids" in {**learned.outputs, **learned.inherent}) == (address.role == "consumer")
    assert "patient" not in (run_study(example.study, example.own).result["columns"] or ())


def test_projections_csv_has_the_ids(folder: Path) -> None:
    for path, read, write in (
        ("north.csv", pd.read_csv, lambda f: f.to_csv("north.csv", index=False)),
        ("south.parquet", pd.read_parquet, lambda f: f.to_parquet("south.parquet")),
    ):
        frame = read(path)
        write(frame.assign(patient=[f"{path[0]}{i}" for i in range(len(frame))]))
    (folder / "study.toml").write_text(NAMED)
    assert atoll("run", "study.toml", "-q") == (0, "", "")
    frame = pd.read_csv("atoll-run/lab/north-south-projections.csv")
    assert list(frame.columns) == ["island", "row_id", "PC1", "PC2", "label"]
    assert frame["row_id"].tolist() == [f"n{i}" for i in range(20)] + [f"s{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, 2, *range(10, 21)], "the row id 'patient' at row 2 is there twice"),
        ([1, None, *range(10, 22)], "the row id 'patient' is missing at row 1"),
    ],
)
def test_ids_that_tell_no_rows_apart_are_refused(ids: list[object], said: str) -> None:
    example = with_ids({"hospital-0": ids})
    with pytest.raises(DataError, match=f"hospital-0: {said}"):
        run_study(example.study, example.own)


def test_what_ids_say_is_said() -> None:
    (consumer,) = [role for role in review_study(with_ids().study).roles if role.role == "consumer"]
    assert any("with the row id 'patient'" in line for line in consumer.learns)
    assert any(line.startswith("row ids say whose each projection is") for line in consumer.caveats)
    (plain,) = [role for role in review_study(pppca().study).roles if role.role == "consumer"]
    assert not any("row id" in line for line in (*plain.learns, *plain.caveats))


def test_a_wrong_number_of_ids_is_refused() -> None:
    scores = np.zeros((2, 1))
    with pytest.raises(MessageError, match="north sent 1 row ids for its 2 rows"):
        joined_scores({"north": Projection(scores, None, (), ("a",))})


def test_ids_are_neither_features_nor_labels_nor_for_baselines() -> None:
    example = with_ids()
    protocol = protocol_of("pppca")
    for wrong in ({"label": "patient"}, {"columns": ["age", "patient"]}):
        study = structs.replace(example.study, parameters={**example.study.parameters, **wrong})
        with pytest.raises(StudyError, match=r"row_ids|row ids"):
            check_study(protocol, study)
    study = structs.replace(meta().study, parameters={"n_components": 2, "row_ids": "patient"})
    with pytest.raises(StudyError, match="row_ids cannot be used with meta"):
        check_study(protocol_of("meta"), study)


def test_a_table_without_the_column_is_named(folder: Path) -> None:
    (folder / "study.toml").write_text(NAMED)
    file = open_study("study.toml")
    own = read_own(file)
    with pytest.raises(DataError, match="there is no column of row ids 'patient'"):
        run_study(file.study, own)
