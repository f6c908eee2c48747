"""Pictures in the docs: those that the script makes, each shown somewhere, and small."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"


def test_pictures_are_those_of_the_script_and_small() -> None:
    script = (ROOT / "docs" / "make_pictures.py").read_text()
    made = set(re.findall(r'"([a-z-]+)\.png"', script)) | set(re.findall(r'"(report-[a-z]+)"', script))
    there = {path.stem for path in PICTURES.iterdir()}
    assert there == made
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) < 400_000
