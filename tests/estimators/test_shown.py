"""What is seen when somebody looks at an object, in a terminal or a notebook."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

import atoll
from atoll.shown import html_table, text_table
from atoll.study.address import Address

X = load_wine().data


@pytest.fixture(scope="module")
def pca() -> atoll.PCA:
    return atoll.PCA(2, standardize=True).fit({"north": X[:90], "<b>south": X[90:]})


def test_what_roles_learned_is_said_by_name_and_size(pca: atoll.PCA) -> None:
    said = repr(pca.learned_)
    assert "server/server\n  was given: nothing\n  saw by the protocol's nature: " in said
    assert "covariance (13 x 13)" in said
    assert max(map(len, said.splitlines())) <= 100
    assert repr(pca.learned_[Address("north", "provider")]).startswith(
        "<Learned: mean (13), components (2 x 13)"
    )


def test_no_value_is_shown(pca: atoll.PCA) -> None:
    server = pca.learned_[Address("server", "server")]
    for text in (repr(pca.learned_), pca.learned_._repr_html_(), repr(server), pca.result_._repr_html_()):
        for values in (pca.mean_, pca.explained_variance_, np.array([pca.n_samples_])):
            for value in values:
                assert str(value)[:6] not in text


def test_a_transcript_is_a_table(pca: atoll.PCA) -> None:
    lines = repr(pca.transcript_).splitlines()
    cost = pca.transcript_
    assert lines[0].startswith(f"{cost.messages:,} messages, {cost.bytes:,} bytes, {cost.rounds} rounds, ")
    assert lines[1].split() == ["role", "messages", "bytes", "seconds"]
    sent = cost.roles["north/provider"]
    assert f"{sent.messages_sent}  {sent.bytes_sent:,}" in next(line for line in lines if "north" in line)
    many = atoll.PCA(1).fit([X[i::25] for i in range(25)]).transcript_
    assert "25 x provider" in repr(many)
    assert len(repr(many).splitlines()) == 5


def test_a_study_is_read_from_top_to_bottom(pca: atoll.PCA) -> None:
    lines = repr(pca.result_.study).splitlines()
    assert lines[0] == "Study 'PCA'"
    assert lines[2].split() == ["protocol", "pppca"]
    assert any(line.split() == ["release", "explained_variance:", "consumer"] for line in lines)
    assert any("n_components = 2" in line for line in lines)


def test_a_table_escapes_title_header_and_cells_alike() -> None:
    """Names are anybody's choice, and a notebook runs what stands in a page."""
    bad = "<script>&'"
    html = html_table(bad, [bad, bad], [[bad, 1]])
    assert "<script" not in html
    assert html.count("&lt;script&gt;&amp;&#x27;") == 4


def test_numbers_are_shown_as_they_are() -> None:
    rows = [("north", 12345, 0.25), ("south", 7, 1234.5)]
    assert text_table(("island", "rows", "seconds"), rows).splitlines() == [
        "island    rows   seconds",
        "north   12,345      0.25",
        "south        7  1.23e+03",
    ]
    assert text_table(("a",), []) == "a"
    assert text_table(("a", "b"), [(True, "x")]).splitlines()[1].split() == ["True", "x"]


def test_names_are_escaped_in_notebooks(pca: atoll.PCA) -> None:
    for shown in (pca.learned_, pca.transcript_, pca.result_.study, pca.result_):
        html = shown._repr_html_()
        assert html.startswith("<table>")
        assert "<b>south" not in html
    assert "&lt;b&gt;south" in pca.learned_._repr_html_()


def test_an_estimator_is_shown_as_scikit_learn_shows_one(pca: atoll.PCA) -> None:
    assert repr(pca) == "PCA(standardize=True)"
    assert "standardize" in pca._repr_html_()
