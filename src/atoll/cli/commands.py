"""Commands and groups of commands, as typer's except for what their help shows."""

from __future__ import annotations

from copy import copy
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup


def _without_type(option: Any) -> Any:
    """``--help`` takes no value, so its help shows no type."""
    if option is not None:
        option.metavar = ""
    return option


def _no_metavar(*_: Any, **__: Any) -> str:
    return ""


class Command(TyperCommand):
    """One command."""

    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = list(super().get_params(ctx))
        for param in params:
            if isinstance(param, TyperArgument):
                # "<str>" says nothing to whoever does not know Python; the name and the words do.
                param.type = copy(param.type)
                param.type.get_metavar = _no_metavar  # type: ignore[method-assign]
        return params


class Group(TyperGroup):
    """Several commands; alone, the group prints its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def get_help_option(self, ctx: Any) -> Any:
        return _without_type(super().get_help_option(ctx))
