"""Study files at a site: what its ``[local]`` table may say, and what of it each island brings to a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import StudyError
from atoll.privacy.ledger import Ledger
from atoll.runtime.studies import ledger_of, open_study, read_own

EXACT = """\
[study]
name = "s"
protocol = "pppca"
secure_sum = "shares"
[parameters]
n_components = 1
{more}
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
roles = ["server", "consumer"]
[release]
components = ["provider", "consumer"]
[local]
"""
PRIVATE = EXACT.format(more="epsilon = 1.0\ndelta = 1e-6\nrow_norm = 3.0")
EXACT = EXACT.format(more="accept_determined = true")
DATA = 'data = { north = "north.csv", south = "south.csv" }\n'
NAMED = 'identities = { north = "north patients", south = "south patients" }\n'
BOTH = 'ledger = "ledger.db"\n' + NAMED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for k, name in enumerate(("north", "south")):
        (tmp_path / f"{name}.csv").write_text(f"a,b\n1,{k}\n2,3\n4,{k + 5}\n")
    monkeypatch.setenv("ATOLL_HOME", str(tmp_path / "home"))
    return tmp_path


def written(folder: Path, study: str, local: str) -> Path:
    path = folder / "study.toml"
    path.write_text(study + local)
    return path


@pytest.mark.parametrize(
    "line",
    [
        'data = { north = "north.csv", west = "west.csv" }',
        'identities = { west = "west patients" }',
        "capacities = { west = 5 }",
        'alignments = { west = "west.atoll" }',
        'alignments = { office = "office.atoll" }',
    ],
)
def test_a_name_that_is_no_island_is_refused_in_every_local_table(folder: Path, line: str) -> None:
    """A name with a slip of the pen would leave the real island without what was meant for it."""
    with pytest.raises(StudyError, match=r"which the study does not name as an island") as caught:
        open_study(written(folder, EXACT, line + "\n"))
    assert f"study.toml:{EXACT.count(chr(10)) + 1}: " in str(caught.value)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_is_a_number_from_one(folder: Path, capacity: int) -> None:
    with pytest.raises(StudyError, match=rf"must be a whole number from 1, got {capacity}"):
        open_study(written(folder, EXACT, f"capacities = {{ north = {capacity} }}\n"))
    open_study(written(folder, EXACT, "capacities = { north = 1 }\n"))


@pytest.mark.parametrize("identity", ["", " ", " north", "north\\u200b"])
def test_an_identity_that_looks_like_another_is_refused(folder: Path, identity: str) -> None:
    with pytest.raises(StudyError, match="north: "):
        open_study(written(folder, EXACT, f'identities = {{ north = "{identity}" }}\n'))


def test_every_island_brings_what_its_site_says(folder: Path) -> None:
    Ledger.create(folder / "ledger.db").close()
    local = DATA + BOTH + "min_colluders = 2\ncapacities = { north = 50 }\n"
    own = read_own(open_study(written(folder, PRIVATE, local)))
    north, south = own["north"], own["south"]
    assert list(own) == ["north", "south"]
    assert (north.table.identity, south.table.identity) == ("north patients", "south patients")
    assert (north.table.capacity, south.table.capacity) == (50, None)
    assert (north.min_colluders, south.min_colluders) == (2, 2)
    assert north.ledger is not None
    assert north.ledger is south.ledger


def test_one_file_for_two_islands_counts_no_row_twice(folder: Path) -> None:
    local = 'data = { north = "north.csv", south = "north.csv" }\n'
    with pytest.raises(StudyError, match="have the same file, whose rows would count twice"):
        read_own(open_study(written(folder, EXACT, local)))


def test_columns_of_one_file_may_be_two_islands(folder: Path) -> None:
    """Where islands hold columns of the same people, no row counts twice."""
    study = EXACT.replace('"pppca"', '"sfpca"\npartition = "vertical"').replace('"server"', '"coordinator"')
    study = study.replace('secure_sum = "shares"\n', "").replace(
        "[parameters]", '[parameters]\ncolumns = ["a"]'
    )
    local = 'data = { north = "north.csv", south = "north.csv" }\n'
    assert list(read_own(open_study(written(folder, study, local)))) == ["north", "south"]


def test_a_private_study_books_in_the_sites_ledger_unless_another_is_named(folder: Path) -> None:
    file = open_study(written(folder, PRIVATE, DATA + NAMED))
    assert ledger_of(file.study, file.local) == folder / "home" / "ledger.db"
    file = open_study(written(folder, PRIVATE, DATA + BOTH))
    assert ledger_of(file.study, file.local) == folder / "ledger.db"


def test_an_exact_study_is_booked_where_there_is_a_ledger_and_data_sets_have_names(folder: Path) -> None:
    file, named = (open_study(written(folder, EXACT, DATA + more)) for more in ("", NAMED))
    assert ledger_of(file.study, file.local) is None
    assert ledger_of(named.study, named.local) is None  # there is none
    (folder / "home").mkdir()
    Ledger.create(folder / "home" / "ledger.db").close()
    assert ledger_of(file.study, file.local) is None
    assert ledger_of(named.study, named.local) == folder / "home" / "ledger.db"


@pytest.mark.parametrize(
    ("study", "words"), [(PRIVATE, "a private study needs"), (EXACT, "a ledger books by")]
)
@pytest.mark.parametrize("missing", ["north", "south"])
def test_no_island_is_booked_without_a_name(folder: Path, study: str, words: str, missing: str) -> None:
    Ledger.create(folder / "ledger.db").close()
    there = "south" if missing == "north" else "north"
    local = f'{DATA}ledger = "ledger.db"\nidentities = {{ {there} = "patients" }}\n'
    with pytest.raises(StudyError, match=f"{words}.* the identity of the data of {missing} "):
        read_own(open_study(written(folder, study, local)))
