"""Components that stay encrypted: the handle that a fit with ``release="encrypted"`` leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from atoll import codec
from atoll.data.island import Island, as_islands
from atoll.errors import ParameterError
from atoll.protocols.base import Learned, Outputs
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import PROTOCOL, later_study
from atoll.protocols.pca.sfpca.parameters import may_leave
from atoll.runtime.engine import Engine
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Party, Study


class EncryptedModel:
    """Every role's share of components and offset, and what they can do with them together.

    Without any one provider's share the others say nothing about the components; the coordinator's holds
    nothing. Of a study with a ``threshold``, so many providers' shares are enough: those that are given take
    part, and fewer say nothing. Here, in the local engine, all of them lie in one process; ``share_of`` hands
    out a role's own, to be kept where that role keeps secrets.
    """

    def __init__(self, study: Study, shares: Mapping[Address, bytes], engine: Engine | None = None) -> None:
        kept: dict[Address, Kept] = {a: codec.decode(share, Kept) for a, share in shares.items()}
        missing = [str(a) for a in (*study.who("coordinator"), *study.who("provider")) if a not in kept]
        may_miss = 0 if study.the("coordinator") not in kept else may_leave(study)
        if len(missing) > may_miss:
            raise ParameterError(
                f"the share of {missing[0]} is missing",
                hint=f"components cannot be used without {'so many' if may_miss else 'all'} shares",
            )
        sessions = {one.session for one in kept.values()}
        if len(sessions) != 1:
            raise ParameterError(
                "the shares come from different runs", hint="shares of one run belong together"
            )
        self.study = study
        self.session = sessions.pop()
        self.shape = next(iter(kept.values())).components.shape[:2]
        self._points = {a.party: one.point for a, one in kept.items() if one.point}
        self._shares = dict(shares)
        self._engine = engine or LocalEngine()

    @classmethod
    def of_run(cls, study: Study, learned: Mapping[Address, Learned], engine: Any) -> EncryptedModel:
        """The handle of a run, from what each role kept."""
        shares = {a: one.inherent["share"] for a, one in learned.items() if "share" in one.inherent}
        return cls(study, shares, engine)

    def __repr__(self) -> str:
        size = sum(map(len, self._shares.values()))
        k, m = self.shape
        return f"<EncryptedModel: {k} components of {m} columns in {len(self._shares)} shares, {size} bytes>"

    def __reduce__(self) -> NoReturn:
        raise ParameterError(
            "an encrypted model is not stored whole: all shares in one file are the components",
            hint="share_of(role) gives each role its own; EncryptedModel(study, shares) joins them again",
        )

    def share_of(self, address: Address) -> bytes:
        """One role's share."""
        return self._shares[address]

    def project(self, islands: Any) -> dict[str, npt.NDArray[np.float64]]:
        """Every island's rows times the components, minus the offset; each result reaches its owner only.

        ``islands``: rows of some or all providers, by name, within the range of the fitted data. Only their
        numbers are public. Signs are as the components have them: the same every time, random in another
        fit.
        """
        tables = as_islands(islands)
        names = {a.party for a in self.study.who("provider") if a in self._shares}
        unknown = [name for name in tables if name not in names]
        if unknown:
            raise ParameterError(f"{unknown[0]!r} holds no share", hint=f"one of {', '.join(sorted(names))}")
        known = self._run({"scores": tuple(tables)}, tables)
        return {name: np.array(known["scores"][name]) for name in tables}

    def open(self, to: str | Sequence[str] = ("provider",)) -> Outputs:
        """Components, offset and column names, opened to roles or parties; shares are the same every time."""
        receivers = (to,) if isinstance(to, str) else tuple(to)
        return self._run({"components": receivers}, {})

    def _kept(self, party: Party) -> dict[str, bytes]:
        """What one party's roles kept, and nobody else's."""
        return {role: self._shares[Address(party.name, role)] for role in party.roles}

    def _run(self, release: Mapping[str, tuple[str, ...]], tables: Mapping[str, Island]) -> Outputs:
        study = later_study(self.study, self.session, release, self._points or None)
        own = {party.name: Own(tables.get(party.name), kept=self._kept(party)) for party in study.parties}
        outcome = self._engine.run(PROTOCOL, study, own)
        known: Outputs = {}
        for one in outcome.learned.values():
            for name, value in one.outputs.items():
                known[name] = {**known.get(name, {}), **value} if isinstance(value, dict) else value
        return known
