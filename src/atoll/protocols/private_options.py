"""The options of a differentially private release, declared once for all protocols.

In a study's ``[parameters]`` they stand beside the protocol's own options; a protocol's parameters have them
as one struct, ``privacy``, and say which of them the protocol takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal, Self

import msgspec
from msgspec import structs

from atoll.errors import StudyError
from atoll.privacy.dp_moments import CentreChoice, Rows
from atoll.privacy.sensitivity import Neighbours
from atoll.study.model import Parameters
from atoll.study.tables import Path, read_table

Noise = Literal["distributed", "local", "gaussian", "laplace", "wishart"]
SHARED_NOISE = ("distributed", "local")
"""Every owner adds a share of the noise, or the whole of it; the others are made by a proxy, as published."""


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """What a private release promises and how: ``delta`` left out is pure epsilon; ``row_norm``: a public
    bound on a row's norm; ``rows``: of length one, or cut; ``noise``: who makes it; ``colluders``: how many
    owners may use their own noise against the others; ``centre``: "pairs" takes rows in pairs, without a
    mean; ``padded``: owners then declare a capacity."""

    epsilon: float
    delta: float | None = None
    row_norm: float | None = None
    rows: Rows = "normalise"
    neighbours: Neighbours = "add-remove"
    noise: Noise = "distributed"
    colluders: int = 1
    assume_centered: bool = False
    centre: CentreChoice = "mean"
    padded: bool = False


OPTIONS = Privacy.__struct_fields__


class PrivateParameters(Parameters, frozen=True):
    """Base of the parameters of protocols that can be private."""

    takes: ClassVar[tuple[str, ...]] = OPTIONS
    """The options of :class:`Privacy` that a study may state."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Those that it must state; without "epsilon" among them it need not be private."""
    fixed: ClassVar[Mapping[str, Any]] = {}
    """Those that the protocol leaves no choice of."""
    noises: ClassVar[tuple[str, ...]] = SHARED_NOISE

    privacy: Privacy | None = None

    @property
    def epsilon(self) -> float | None:
        """None where the study is not private."""
        return None if self.privacy is None else self.privacy.epsilon

    @classmethod
    def default_noise(cls, stated: Mapping[str, Any]) -> Noise:
        """Who makes the noise where the study does not say."""
        del stated
        return "distributed"

    @classmethod
    def read(cls, table: Mapping[str, Any], path: Path) -> Self:
        table = {name: value for name, value in table.items() if name not in OPTIONS or value is not None}
        flat = structs.asdict(read_table(table, _flat_form(cls), path))
        own = {name: value for name, value in flat.items() if name not in OPTIONS}
        if flat["epsilon"] is None:
            for name in cls.takes:
                if name in table:
                    raise StudyError(
                        f"{name} cannot be used in a study without epsilon",
                        hint="set epsilon (and delta) for a private study, or leave it out",
                        path=(*path, name),
                    )
            return cls(**own)
        private = {name: flat[name] for name in cls.takes} | dict(cls.fixed)
        private["noise"] = private.get("noise") or cls.default_noise(table)
        return cls(**own, privacy=Privacy(**private))

    def plain(self) -> dict[str, Any]:
        own = super().plain()
        own.pop("privacy")
        if self.privacy is not None:
            own |= {name: getattr(self.privacy, name) for name in self.takes}
        return own


@cache
def _flat_form(kind: type[PrivateParameters]) -> type[msgspec.Struct]:
    """A struct that is read as the table is written."""
    fields: list[Any] = [
        (field.encode_name, field.type) if field.required else (field.encode_name, field.type, field.default)
        for field in structs.fields(kind)
        if field.name != "privacy"
    ]
    for field in structs.fields(Privacy):
        if field.name not in kind.takes:
            continue
        known = Literal[kind.noises] if field.name == "noise" else field.type
        default = None if field.name in ("epsilon", "noise") else field.default
        needed = field.name in kind.needs
        fields.append((field.name, _needed(known)) if needed else (field.name, known | None, default))
    return msgspec.defstruct(kind.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _needed(kind: Any) -> Any:
    return float if kind == float | None else kind
