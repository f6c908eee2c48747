"""The page on Atoll in Python is what its docstrings say now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import atoll

ROOT = Path(__file__).parents[2]


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("made", ROOT / "docs" / "make_python_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    made = maker()
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run: python docs/make_python_reference.py"


def test_every_public_name_option_and_method_is_on_it() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for name in atoll.__all__:
        assert f"## `atoll.{name}`" in page
    options = page.split("**Parameters**")[1].split("**Attributes**")[0]
    explained = set(re.findall(r"\w+", " ".join(re.findall(r"\*\*`(.*?)`\*\*", options))))
    later = {
        "variant",
        "eigen",
        "key",
        "random_state",
    }  # one choice only, or explained with what they belong to
    assert set(atoll.PCA().get_params()) - later <= explained
    for method in (
        "fit",
        "transform",
        "fit_transform",
        "score",
        "get_covariance",
        "plot_scree",
        "to_sklearn",
    ):
        assert f"### `{method}(" in page
