"""Adapters: the estimator knows no protocol by name, and another package can bring one."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tests.support.packages import install

import atoll
from atoll.errors import ParameterError
from atoll.estimators.constraints import ANY, FLAG, Constraint, among, given
from atoll.estimators.pca import by_island, columns, estimator, model
from atoll.estimators.pca.registry import ADAPTERS, adapter_of
from atoll.protocols import PROTOCOLS

X = np.random.default_rng(3).normal(size=(40, 4))


def test_every_protocol_of_pca_has_an_adapter() -> None:
    fitted = {name for name, p in PROTOCOLS.items() if p.analysis == "pca" and not p.follows}
    of_a_variant = {"sfpca-paper": ("sfpca", "paper")}
    assert set(ADAPTERS) == fitted - set(of_a_variant)
    assert all(adapter.protocol == name for name, adapter in ADAPTERS.items())
    for protocol, variant in of_a_variant.values():
        assert type(adapter_of(protocol, variant)) is not type(adapter_of(protocol))


def test_a_later_step_says_what_it_follows() -> None:
    """It goes on from shares that a fit kept, so no estimator fits it."""
    later = {name: protocol.follows for name, protocol in PROTOCOLS.items() if protocol.follows}
    assert later == {"sfpca-later": "sfpca"}
    assert set(later.values()) <= set(ADAPTERS)


FUTURE = "from __future__ import annotations"


def test_the_estimator_knows_no_protocol_by_name() -> None:
    """Apart from its docstring and the default of ``protocol``."""
    modules = (estimator, model, by_island, columns)
    tree = ast.parse("\n".join(inspect.getsource(module).replace(FUTURE, "") for module in modules))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module)
        and isinstance(node.body[0], ast.Expr)
    }
    defaults = {
        id(default)
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for default in node.kw_defaults
    }
    said = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings | defaults
    ]
    assert "result_" in said  # so that this test can fail
    assert [text for text in said if any(name in text for name in ADAPTERS)] == []


@pytest.mark.parametrize("name", ADAPTERS)
def test_declared_options_are_options_of_the_estimator(name: str) -> None:
    adapter = ADAPTERS[name]
    assert {*adapter.options, *adapter.private_options} <= set(atoll.PCA().get_params())


HALVED = """
import msgspec

from atoll.estimators.pca.pppca import PPPCA


class Halved(PPPCA):
    def study(self, estimator, islands):
        return msgspec.structs.replace(super().study(estimator, islands), name="halved")

    def transform(self, estimator, X):
        return super().transform(estimator, X) / 2
"""


def test_a_package_can_bring_an_adapter(site: Path) -> None:
    """Another use of a protocol that is there."""
    (site / "halved_of_a_stranger.py").write_text(HALVED)
    install(site, "stranger", "[atoll.estimators.pca]\nhalved = halved_of_a_stranger:Halved\n")
    mine = clone(atoll.PCA(1, protocol="halved")).fit([X[:20], X[20:]])
    plain = atoll.PCA(1).fit([X[:20], X[20:]])
    assert mine.result_.study.name == "halved"
    np.testing.assert_allclose(mine.transform(X), plain.transform(X) / 2)
    with pytest.raises(ParameterError, match="no protocol 'quartered'") as refused:
        adapter_of("quartered")
    assert "'halved'" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("constraint", "good", "bad", "words"),
    [
        (ANY, object(), None, None),
        (FLAG, np.True_, 1, "x=1 must be True or False"),
        (among(("red", "blue"), "there is no colour {value!r}"), "red", "rad", "there is no colour 'rad'"),
        (given("it needs an {name}", "x=1"), 0, None, "it needs an x"),
    ],
)
def test_constraints_refuse_in_their_own_words(
    constraint: Constraint, good: Any, bad: Any, words: str | None
) -> None:
    constraint.check("x", good)
    if words is not None:
        with pytest.raises(ParameterError, match=words):
            constraint.check("x", bad)
