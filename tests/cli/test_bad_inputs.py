"""What goes wrong in the first hour: one error that names the place, one hint, and nothing written."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from tests.support.running import atoll

STUDY = """[study]
name = "first"
protocol = "pppca"

[parameters]
n_components = 1
columns = ["age", "dose", "weight"]
accept_determined = true

[[party]]
name = "north"
roles = ["provider"]

[[party]]
name = "south"
roles = ["provider"]

[[party]]
name = "office"
roles = ["server", "consumer"]

[release]
components = ["consumer"]

[local]
data = { north = "north.csv", south = "south.csv" }
"""
HEADER = "age,dose,weight,ill\n"
ROWS = [f"{20 + 7 * i % 60},{0.5 * i * i % 7},{60 + i},{'yes' if i % 3 else 'no'}\n" for i in range(12)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text(HEADER + "".join(ROWS))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def refused(code: int, error: str, hint: str) -> None:
    before = {path.name for path in Path().iterdir()}
    done = atoll("run", "study.toml")
    lines = done.err.splitlines()
    assert done.code == code, done.err
    assert lines[0].startswith("error: ")
    assert error in lines[0]
    assert sum(line.startswith("error: ") for line in lines) == 1
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]
    assert done.out == ""
    assert {path.name for path in Path().iterdir()} == before


def test_the_study_runs_as_it_stands(folder: Path) -> None:
    assert atoll("run", "study.toml", "--quiet").code == 0


TABLES = {
    "a missing value": (
        HEADER + ",1,70,no\n" + ROWS[0],
        "south: column 'age' holds a missing value",
        "drop the row",
    ),
    "an infinite value": (
        HEADER + "inf,1,70,no\n" + ROWS[0],
        "infinite value (inf) at row 0 (line 2",
        "drop the row",
    ),
    "text": (
        HEADER + "old,1,70,no\n" + ROWS[0],
        "south: column 'age' holds text at row 0",
        "recode it as numbers",
    ),
    "no row": (HEADER, "south: the table has no rows", "leave the island out"),
    "no line": ("", "south.csv cannot be read: it is empty", "its first line names the columns"),
    "no header": ("".join(ROWS), "the name of column 1 of south.csv is a number", "no header line"),
    "a name twice": (
        "age,age,weight\n1,2,3\n4,5,6\n",
        "columns 1 and 2 of south.csv have the same name",
        "differ",
    ),
    "no name": ("age,,weight\n1,2,3\n4,5,6\n", "column 2 of south.csv has no name", "name it"),
    "semicolons": (
        HEADER.replace(",", ";") + "1;2;3;no\n" * 2,
        "it has one column only, and ';'",
        ".tsv",
    ),
    "a column less": ("age,dose\n1,2\n3,4\n", "south lacks 'weight'", "columns = [...]"),
    "a longer line": (HEADER + ROWS[0] + "1,2,3,no,more,yet\n", "line 3 has 6 values where", "quotes"),
    "a value without a name": (
        HEADER + "".join(f"{900 + i},{row}" for i, row in enumerate(ROWS)),
        "its lines have 1 value more than its first line has names",
        "row names",
    ),
    "a comma at each end": (
        HEADER + "".join(f"{row.strip()},\n" for row in ROWS),
        "1 value more",
        "separator",
    ),
    "a quote left open": (HEADER + '1,"2,3,no\n4,5,6,no\n', "a quote in line 2 is not closed", "close it"),
    "lines of an old Mac": (
        (HEADER + "".join(ROWS)).replace("\n", "\r"),
        "its lines are not those",
        "line ends",
    ),
    "a name with a space": (
        HEADER.replace("dose", "dose ") + "".join(ROWS),
        "south lacks 'dose', which the study has",
        "capitals and spaces too",
    ),
    "numbers too large": (HEADER + "1e300,1,70,no\n" * 3, "column 'age' has values so large", ""),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_cannot_be_used(table: str, folder: Path) -> None:
    text, error, hint = TABLES[table]
    (folder / "south.csv").write_text(text)
    refused(3, error, hint)


FILES = {
    "south.csv": ("age,dose\n1,2\n3,4\n".encode("utf-16"), "it is not UTF-8 text", "save it as UTF-8"),
    "south.csv.gz": (b"age,dose\n", "it is not packed by gzip", "leave .gz out"),
    "cut.csv.gz": (
        gzip.compress(HEADER.encode() + b"1,2,3,no\n" * 2)[:-9],
        "it ends too early",
        "copy it again",
    ),
    "south.tsv.gz": (gzip.compress(b""), "it is empty", "its first line"),
    "south.parquet": (b"PAR1 not", "south.parquet cannot be read", "the kind that its name says"),
    "south.npz": (b"PK", "south.npz cannot be read", "the kind that its name says"),
    "south.xlsx": (b"PK", "south.xlsx has an ending that is not known", ".parquet"),
    "elsewhere.csv": (None, "south: there is no file", "relative to the study file"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read(name: str, folder: Path) -> None:
    content, error, hint = FILES[name]
    (folder / "study.toml").write_text(STUDY.replace("south.csv", name))
    if content is not None:
        (folder / name).write_bytes(content)
    refused(3, error, hint)


def test_a_folder_is_no_table(folder: Path) -> None:
    (folder / "tables").mkdir()
    (folder / "study.toml").write_text(STUDY.replace("south.csv", "tables"))
    refused(3, "south: tables is a folder, not a table", "the path of a file")


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    (folder / "study.toml").write_text(STUDY.replace("south.csv", "pipe.csv"))
    refused(3, "south: pipe.csv is no ordinary file", "write the table to a file")


def test_a_place_below_a_file_is_refused_before_the_run(folder: Path) -> None:
    done = atoll("run", "study.toml", "--output", "north.csv/results")
    assert done.code == 2
    assert "north.csv is a file, not a folder" in done.err
    assert done.out == ""


STUDIES = {
    "a key above all tables": ("[study]\n", "", "study.toml:1: 'name' stands above all tables", "[study]"),
    "a table that is none": ("[release]", "[releases]", "there is no table [releases]", "'release'"),
    "a key that is none": ("n_components", "n_component", "has no 'n_component'", "'n_components'"),
    "a protocol that is none": ('"pppca"', '"ppca"', "no protocol called 'ppca'", "did you mean 'pppca'"),
    "a sum that is none": (
        'protocol = "pppca"',
        'protocol = "pppca"\nsecure_sum = "share"',
        "no secure sum called 'share'",
        "did you mean 'shares'",
    ),
    "a number for a name": ('protocol = "pppca"', "protocol = 3", "protocol: expected text", "in quotes"),
    "text for true": (
        "n_components = 1",
        'n_components = 1\nstandardize = "yes"',
        "standardize: expected true or false, got text",
        "true and false do not",
    ),
    "fewer than no components": ("n_components = 1", "n_components = -1", "n_components=-1", "from 1"),
    "an epsilon of nothing": (
        "accept_determined = true",
        "epsilon = 0\ndelta = 1e-5\nrow_norm = 100",
        "epsilon must be a positive number, got 0.0",
        "smaller is more private",
    ),
    "an epsilon alone": (
        "accept_determined = true",
        "epsilon = 1.0",
        "needs row_norm",
        "never from the rows",
    ),
    "a party twice": ('name = "south"', 'name = "north"', "party 'north' is named twice", "merge its roles"),
    "a role that nobody plays": (
        '["server", "consumer"]',
        '["server"]',
        "names the role 'consumer', which no party here plays",
        "give a party the role 'consumer'",
    ),
    "a receiver that is none": (
        '["consumer"]\n\n[local]',
        '["minister"]\n\n[local]',
        "names 'minister', neither a role nor a party here",
        "one of provider",
    ),
    "an output that is none": ("components = [", "componets = [", "the output 'componets'", "'components'"),
    "an island without data": (', south = "south.csv"', "", "there is no data for south", "[local] data"),
    "a party that is no list": (
        '[[party]]\nname = "north"',
        '[party]\nname = "north"',
        "the table [[party]] is there twice",
        "keep one",
    ),
    "a file for two islands": (
        '"south.csv"',
        '"north.csv"',
        "north and south have the same file, whose rows would count twice",
        "a table of its own",
    ),
}


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_that_cannot_be_run(study: str, folder: Path) -> None:
    said, instead, error, hint = STUDIES[study]
    assert said in STUDY
    (folder / "study.toml").write_text(STUDY.replace(said, instead))
    refused(4, error, hint)


def test_a_target_of_words_is_told_how_to_be_numbers(folder: Path) -> None:
    model = STUDY.replace('"pppca"', '"glm"\nanalysis = "regression"')
    model = model.replace("n_components = 1", 'family = "binomial"\ntarget = "ill"')
    model = model.replace("accept_determined = true\n", "").replace("components = [", "model = [")
    (folder / "study.toml").write_text(model)
    refused(3, "column 'ill' holds text at row 0", "no and yes: 0 and 1")
