"""What a study says for an impact assessment: inside the digest but for the contact; printed, or marked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.support.examples import private_pppca

import atoll
from atoll.errors import StudyError
from atoll.report.assessment import as_markdown
from atoll.review.study import review_file, review_study
from atoll.runtime.studies import open_study
from atoll.study.model import Assessment, from_plain, to_plain

STUDY = """\
[study]
name = "small"
protocol = "pppca"
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
role = "server"
[release]
components = ["provider"]
"""
STATED = {
    "purpose": '"Which vital signs go together"',
    "legal_basis": '"Article 9(2)(j)"',
    "controller": '"Ministry"',
    "processors": '["stats office", "university"]',
    "data_categories": '["vital signs", "age"]',
    "retention": '"ten years"',
    "contact": '"dpo@example.org"',
}


def digest(tmp_path: Path, text: str) -> str:
    (tmp_path / "study.toml").write_text(text)
    return atoll.load_study(tmp_path / "study.toml").digest


def assessment(**stated: str) -> str:
    return STUDY + "[assessment]\n" + "".join(f"{key} = {value}\n" for key, value in stated.items())


def test_everything_but_the_contact_is_approved(tmp_path: Path) -> None:
    plain = digest(tmp_path, STUDY)
    assert digest(tmp_path, STUDY + "[assessment]\n") == plain
    seen = {plain}
    for key, value in STATED.items():
        changed = digest(tmp_path, assessment(**{key: value}))
        assert (changed in seen) == (key == "contact"), key
        seen.add(changed)
    whole = digest(tmp_path, assessment(**STATED))
    assert digest(tmp_path, assessment(**{**STATED, "contact": '"somebody else"'})) == whole
    assert digest(tmp_path, assessment(**{**STATED, "purpose": '"Marketing"'})) != whole


def test_the_digest_of_a_study_without_an_assessment_is_as_it_was(tmp_path: Path) -> None:
    """Its bytes have no word of one."""
    (tmp_path / "study.toml").write_text(STUDY)
    assert b"assessment" not in atoll.load_study(tmp_path / "study.toml").canonical()


def test_what_is_said_is_printed_and_the_rest_marked(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(assessment(**STATED))
    text = as_markdown(review_file(open_study(tmp_path / "study.toml")))
    for words in (
        "| Purpose | Which vital signs go together |",
        "| Legal basis | Article 9(2)(j) |",
        "| Controller | Ministry |",
        "| Processors | stats office, university |",
        "| Categories of data | vital signs, age |",
        "| Columns | **to be filled in** |",
        "| Retention | ten years |",
        "| Contact | dpo@example.org |",
    ):
        assert words in text
    assert text.count("to be filled in") == 1
    (tmp_path / "study.toml").write_text(STUDY)
    assert as_markdown(review_file(open_study(tmp_path / "study.toml"))).count("**to be filled in**") == 8


def test_columns_are_those_of_the_study_or_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "north.csv").write_text("age,pulse,outcome\n1,2,ill\n")
    local = '[local]\ndata = { north = "north.csv" }\n'
    label = STUDY.replace("[[party]]", '[parameters]\nlabel = "outcome"\n[[party]]', 1)
    (tmp_path / "study.toml").write_text(label + local)
    assert review_file(open_study(tmp_path / "study.toml")).columns == ("age", "pulse")
    named = STUDY.replace("[[party]]", '[parameters]\ncolumns = ["dose"]\n[[party]]', 1)
    (tmp_path / "study.toml").write_text(named + local)
    assert review_file(open_study(tmp_path / "study.toml")).columns == ("dose",)


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(assessment(purpos='"x"'))
    with pytest.raises(StudyError, match=r"study\.toml:16: \[assessment\] has no 'purpos'"):
        atoll.load_study(tmp_path / "study.toml")


def test_a_result_file_keeps_it() -> None:
    study = msgspec.structs.replace(private_pppca().study, assessment=Assessment(purpose="p"))
    assert from_plain(to_plain(study)) == study


def test_the_risks_of_a_private_study_are_said_with_its_numbers() -> None:
    risks = as_markdown(review_study(private_pppca(epsilon=1.5).study)).split("## Residual risks")[1]
    assert "one row is not one person" in risks
    assert "twice the epsilon (3)" in risks
    assert "ten times (15)" in risks
    assert "1 of them can do so without harm" in risks
    assert "Studies without an epsilon are not counted" in risks
    exact = as_markdown(review_study(private_pppca(epsilon=None, delta=None, row_norm=None).study))
    assert "one row is not one person" not in exact
