"""The ``atoll`` command. Each command has a file of its own and imports what it needs when it runs."""

from __future__ import annotations

from atoll.cli.app import main

__all__ = ["main"]
