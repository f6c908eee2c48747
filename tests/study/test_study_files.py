"""Study files: what they say is read, and what is wrong is named with its line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import atoll
from atoll.errors import StudyError
from atoll.runtime.studies import load_study, open_study, read_own
from atoll.study.places import Places

STUDY = """\
# a study
[study]
name = "icu-pca"
analysis = "pca"
protocol = "pppca"
secure_sum = "shares"
partition = "horizontal"
[parameters]
n_components = 5
standardize = true
[[party]]
name = "st-mary"
role = "provider"
[[party]]
name = "north-clinic"
role = "provider"
[[party]]
name = "stats-office"
roles = ["server", "consumer"]
[release]                       # output -> parties or roles
components = ["provider", "consumer"]
scores = "consumer"
[local]                         # not part of the digest
data = { st-mary = "st-mary.csv", north-clinic = "north.parquet" }
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "icu.toml"
    path.write_text(STUDY)
    return path


def test_every_field_is_read(written: Path) -> None:
    file = open_study(written)
    study = file.study
    assert (study.name, study.analysis, study.protocol) == ("icu-pca", "pca", "pppca")
    assert (study.secure_sum, study.partition) == ("shares", "horizontal")
    left_out = {"accept_determined": False, "columns": None, "label": None, "row_ids": None}
    assert dict(study.parameters) == {"n_components": 5, "standardize": True, **left_out}
    assert [(party.name, party.roles) for party in study.parties] == [
        ("st-mary", ("provider",)),
        ("north-clinic", ("provider",)),
        ("stats-office", ("server", "consumer")),
    ]
    assert dict(study.release) == {"components": ("provider", "consumer"), "scores": ("consumer",)}
    assert file.local.data["st-mary"] == str(written.parent / "st-mary.csv")
    assert atoll.load_study is load_study
    assert load_study(written) == study


def test_a_partys_key_is_part_of_what_islands_approve(written: Path) -> None:
    before = load_study(written)
    assert [party.fingerprint for party in before.parties] == [None, None, None]
    written.write_text(STUDY.replace('"north-clinic"\n', '"north-clinic"\nfingerprint = "ab12"\n'))
    named = load_study(written)
    assert [party.fingerprint for party in named.parties] == [None, "ab12", None]
    assert named.digest != before.digest


def test_sum_options_come_from_their_table(written: Path) -> None:
    text = STUDY.replace('"shares"', '"lattice"') + '[sum]\nkey = "server"\n'
    written.write_text(text)
    assert dict(load_study(written).sum_options) == {"key": "server"}
    written.write_text(STUDY.replace('"shares"', '"masks"') + "[sum]\ndropouts = 1\n")
    with pytest.raises(StudyError, match="cannot lose 1"):  # two providers are too few
        load_study(written)


def test_local_matters_do_not_change_the_digest(written: Path) -> None:
    before = load_study(written).digest
    written.write_text(STUDY[: STUDY.index("[local]")])
    assert load_study(written).digest == before
    written.write_text(STUDY.replace("= 5", "= 4"))
    assert load_study(written).digest != before


@pytest.mark.parametrize("party", ['"st-mary"', '["st-mary"]', '{ name = "st-mary", role = "provider" }'])
def test_parties_are_a_list_of_tables(written: Path, party: str) -> None:
    first, last = STUDY.index("[[party]]"), STUDY.index("[release]")
    written.write_text(f"party = {party}\n" + STUDY[:first] + STUDY[last:])
    with pytest.raises(StudyError, match=r"icu.toml:1: party must be a list of tables"):
        load_study(written)


WRONG = [
    (
        'role = "provider"\n[[party]]\nname = "north',
        'role = "provder"\n[[party]]\nname = "north',
        13,
        "provider",
    ),
    ('["server", "consumer"]', '[\n  "server",\n  "consume",\n]', 21, "consumer"),
    ("standardize = true", 'standardize = "yes"', 10, None),
    ("standardize", "standardise", 10, "standardize"),
    ("= 5", "= 0", 9, None),
    ("= 5", "= [1, 2]", 9, None),
    ("scores =", "score =", 22, "scores"),
    ('scores = "consumer"', 'scores = ["consumer", "cnsumer"]', 22, "consumer"),
    ('scores = "consumer"', 'scores = ["provider"]', 22, "it can go to consumer"),
    ('scores = "consumer"', "scores = 3", 22, "scores = ["),
    ('scores = "consumer"', 'scores = ["consumer", 3]', 22, "scores = ["),
    ('"shares"', '"share"', 6, "shares"),
    ('"pppca"', '"ppca"', 5, "pppca"),
    ('"horizontal"', '"vertical"', 7, "horizontal"),
    ('"horizontal"', "3", 7, None),
    ('name = "icu-pca"\n', "", 2, "name"),
    ('name = "icu-pca"', "name = icu", 3, "TOML"),
    ("= 5", "= [1,", 10, "TOML"),
    ("[local]", "[locals]", 23, "local"),
    ('st-mary = "', 'st-mry = "', 24, "st-mary"),
    ('st-mary = "st-mary.csv"', "st-mary = 3", 24, "st-mary.csv"),
    ('roles = ["server", "consumer"]', 'roles = ["consumer"]', 11, "server"),
    ('roles = ["server", "consumer"]', 'role = "server"\nroles = ["consumer"]', 20, "role ="),
    ('roles = ["server", "consumer"]\n', "", 17, "role ="),
    ('roles = ["server", "consumer"]', 'roles = ["server", "server"]', 19, None),
    ('name = "north-clinic"', 'name = "st-mary"', 15, "roles"),
    ('name = "north-clinic"', 'name = "a/b"', 15, "'/'"),
    ('name = "north-clinic"', 'nam = "north-clinic"', 15, "name"),
    ("[study]\n", "[sum]\nx = 1\n[study]\n", 3, "no options"),
    ("[parameters]", "[[parameters]]", 8, "[parameters]"),
]


# What a protocol or a mechanism refuses of the options names its key too, not only the table.
REFUSED = [
    ("epsilon = -1.0\nrow_norm = 2.0", "epsilon"),
    ("epsilon = 1.0\nrow_norm = 2.0\ndelta = 3.0", "delta"),
    ("epsilon = 1.0\nrow_norm = -2.0", "row_norm"),
    ("epsilon = 1.0\nrow_norm = 2.0\ncolluders = 0", "colluders"),
    ("epsilon = 1.0\nrow_norm = 2.0\ncolluders = 2", "colluders"),
    ("epsilon = 1.0\nrow_norm = 2.0\nstandardize = true", "standardize"),
    ('epsilon = 1.0\ncentre = "pairs"\nrows = "clip"', "rows"),
    ('epsilon = 1.0\ncentre = "pairs"\nassume_centered = true', "assume_centered"),
    ("epsilon = 1.0\nrow_norm = 2.0\npadded = true", "padded"),
    ("epsilon = 1.0", "[parameters]"),  # where row_norm is missing
    ("delta = 1e-5", "delta"),
]


@pytest.mark.parametrize(("options", "key"), REFUSED)
def test_a_refused_option_is_named_with_its_own_line(tmp_path: Path, options: str, key: str) -> None:
    path = tmp_path / "icu.toml"
    path.write_text(STUDY.replace("standardize = true", options).replace('scores = "consumer"\n', ""))
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if text.startswith(key))
    with pytest.raises(StudyError) as caught:
        open_study(path)
    assert caught.value.message.startswith(f"{path}:{line}: "), caught.value.message


def test_so_is_an_option_of_the_secure_sum(tmp_path: Path) -> None:
    path = tmp_path / "icu.toml"
    path.write_text(STUDY.replace('"shares"', '"masks"') + "[sum]\n# how many may leave\ndropouts = 1\n")
    with pytest.raises(StudyError, match=r"icu\.toml:27: 2 contributors cannot lose 1"):
        open_study(path)


@pytest.mark.parametrize(("said", "instead", "line", "hint"), WRONG)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, said: str, instead: str, line: int, hint: str | None
) -> None:
    assert said in STUDY
    path = tmp_path / "icu.toml"
    path.write_text(STUDY.replace(said, instead, 1))
    with pytest.raises(StudyError) as caught:
        open_study(path)
    assert caught.value.message.startswith(f"{path}:{line}: "), caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_meta_refuses_to_standardise_at_its_parameters(written: Path) -> None:
    written.write_text(STUDY.replace('"pppca"', '"meta"').replace('scores = "consumer"\n', ""))
    with pytest.raises(StudyError, match=r"icu\.toml:10: meta cannot standardise"):
        open_study(written)


def test_one_island_is_refused(written: Path) -> None:
    start, end = STUDY.index('[[party]]\nname = "north'), STUDY.index('[[party]]\nname = "stats')
    written.write_text(STUDY[:start] + STUDY[end:])
    with pytest.raises(StudyError, match="at least 2 islands"):
        open_study(written)


def test_files_that_cannot_be_studies(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="does not exist"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(StudyError, match="is a folder"):
        load_study(tmp_path)
    path = tmp_path / "latin.toml"
    path.write_bytes("[study]\nname = 'caf\xe9'\n".encode("latin-1"))
    with pytest.raises(StudyError, match=r"latin\.toml:2: .*UTF-8"):
        load_study(path)
    path.write_text("")
    with pytest.raises(StudyError, match=r"lacks the table \[study\]"):
        load_study(path)


def test_windows_line_ends_count_as_one(tmp_path: Path) -> None:
    path = tmp_path / "icu.toml"
    path.write_bytes(STUDY.replace("= 5", "= 0").replace("\n", "\r\n").encode())
    with pytest.raises(StudyError, match=r"icu\.toml:9: "):
        load_study(path)


def test_an_island_without_data_is_named(written: Path) -> None:
    written.write_text(STUDY.replace(', north-clinic = "north.parquet"', ""))
    with pytest.raises(StudyError, match=r"icu\.toml:24: there is no data for north-clinic"):
        read_own(open_study(written))


# ---- the line of every key ----

TRICKY = '''\
top = 1  # [not] a = "table"
"quoted key" = "a # no comment ] }"
text = """
[[not.a.table]]
key = 1 \\""" still text """"
literal = \'\'\'
x = [ \'\'\'
[a.b]
c.d = 2
c.e = [ 1, # one, two
  2, [3,
   4] ]
[a]
z = { p = 1, q.r = [
  "]", '}' ] }
[[list]]
n = 1
[[list]]
n = 2
[list.sub]
m = 3
[[list.deep]]
o = 4
[[list.deep]]
o = 5
"d.e" . f = 6
when = 1979-05-27 07:32:00
'''


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


def test_every_key_of_a_tricky_text_has_its_line() -> None:
    places = Places(TRICKY)
    found = {path: places.line(path) for path, _ in leaves(tomllib.loads(TRICKY))}
    assert found == {
        ("top",): 1,
        ("quoted key",): 2,
        ("text",): 3,
        ("literal",): 6,
        ("a", "b", "c", "d"): 9,
        ("a", "b", "c", "e", 0): 10,
        ("a", "b", "c", "e", 1): 11,
        ("a", "b", "c", "e", 2, 0): 11,
        ("a", "b", "c", "e", 2, 1): 12,
        ("a", "z", "p"): 14,
        ("a", "z", "q", "r", 0): 15,
        ("a", "z", "q", "r", 1): 15,
        ("list", 0, "n"): 17,
        ("list", 1, "n"): 19,
        ("list", 1, "sub", "m"): 21,
        ("list", 1, "deep", 0, "o"): 23,
        ("list", 1, "deep", 1, "o"): 25,
        ("list", 1, "deep", 1, "d.e", "f"): 26,
        ("list", 1, "deep", 1, "when"): 27,
    }


def test_what_is_not_there_has_the_line_of_what_is_around_it() -> None:
    places = Places(STUDY)
    assert places.line(("study", "nothing", 3)) == 2
    assert places.line(("nothing",)) is None


# ---- files of 0.1.0 ----

RECORDED = Path(__file__).parent / "recorded"

DIGESTS = {
    "icu": (
        "08f1edb0c539c398a37555ce67be34a0d8b75821e91233abec38b18e748958d4",
        "86702f7ea969edf4cf5d1b6017e07db12fd1d5d87a41e80e1e6c755a74e2b429",
    ),
    "private": (
        "cc6fc8bac9844725e36d9f10808df24aea8ca94965ac081615360a06da1b9ef6",
        "ec6cf6b9fb0bc4b63b515a22606b086ad65a393fefd6ab289944291b608fbe08",
    ),
}
"""Study -> what 0.1.0 gave for its file, and what is given now."""


@pytest.mark.parametrize("name", DIGESTS)
def test_a_file_of_the_first_version_loads_and_needs_a_new_approval(name: str) -> None:
    """Its digest covered what the file says; now it covers every option. From here on it stays as it is."""
    study = load_study(RECORDED / f"{name}-0.1.0.toml")
    approved, now = DIGESTS[name]
    assert study.digest == now
    assert study.digest != approved
    assert (
        study.parameters["n_components"]
        == tomllib.loads((RECORDED / f"{name}-0.1.0.toml").read_text())["parameters"]["n_components"]
    )
