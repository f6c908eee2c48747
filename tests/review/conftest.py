"""The folder that commands work in."""

from __future__ import annotations

from tests.cli.conftest import folder

__all__ = ["folder"]
