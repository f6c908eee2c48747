"""A result: what was released, the study it came from, what it cost; and the file that holds it.

The file is a header line and one codec block: arrays and plain data, never pickled objects.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from atoll import codec
from atoll.errors import DataError, MessageError, NotReleased
from atoll.lazy import lazy
from atoll.protocols import protocol_of
from atoll.protocols.base import described, with_helpers
from atoll.runtime.transcript import Transcript
from atoll.shown import html_table
from atoll.study.address import Address
from atoll.study.model import Study, from_plain, to_plain

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

# What draws stands on a higher layer, and is not there before somebody asks for a picture.
_drawing: Any = lazy("atoll.report.result_plots")

_HEADER = b"atoll result 1\n"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    study: dict[str, Any]
    digest: str
    outputs: dict[str, Any]
    transcript: Transcript
    certificate: dict[str, Any] | None
    booked: str | None = None


class Result:
    """What a study released to its holder. ``result["components"]`` and the like give the values."""

    def __init__(
        self,
        study: Study,
        outputs: Mapping[str, Any],
        transcript: Transcript,
        certificate: dict[str, Any] | None = None,
        booked: str | None = None,
    ) -> None:
        self.study = study
        self.outputs = dict(outputs)
        self.transcript = transcript
        self.certificate = certificate
        self.booked = booked
        """What the islands' ledgers know of it, in words; None where nothing is to be said."""

    def __repr__(self) -> str:
        booked = f"; {self.booked}" if self.booked else ""
        return f"<Result of {self.study.name!r}: {', '.join(self.outputs)}{booked}>"

    def _repr_html_(self) -> str:
        rows = [(name, described({name: value})) for name, value in self.outputs.items()]
        title = f"Result of {self.study.name!r}" + (f"; {self.booked}" if self.booked else "")
        return html_table(title, ("output", "size"), rows)

    def __contains__(self, name: str) -> bool:
        return name in self.outputs

    def __getitem__(self, name: str) -> Any:
        if name not in self.outputs:
            raise not_released(self.study, name)
        return self.outputs[name]

    @property
    def plot(self) -> Any:
        """Pictures for notebooks: ``result.plot.scree()``, ``.projection()``, ``.biplot()``, ``.loadings()``
        (:class:`atoll.report.result_plots.Plots`)."""
        return _drawing.Plots(self)

    def consumer_frame(self) -> pd.DataFrame:
        """The projections of all islands in one frame, with row ids and labels where the study names them."""
        parts = []
        labels, ids = self.outputs.get("labels") or {}, self.outputs.get("ids") or {}
        for island, scores in self["scores"].items():
            part = pd.DataFrame(scores, columns=[f"PC{i + 1}" for i in range(scores.shape[1])])
            if island in ids:
                part.insert(0, "row_id", ids[island])
            part.insert(0, "island", island)
            if island in labels:
                part["label"] = labels[island]
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def save(self, path: str | Path) -> Path:
        """Write the result, whole or not at all, readable by its owner only."""
        path = Path(path)
        if not path.parent.is_dir():
            raise DataError(f"there is no folder {path.parent}", hint="make it first")
        content = _File(
            to_plain(self.study),
            self.study.digest,
            self.outputs,
            self.transcript,
            self.certificate,
            self.booked,
        )
        write_whole(path, _HEADER + codec.encode(content))
        return path


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file in one step, so that no reader ever sees half of it; ``durable``: not even after a power
    failure."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_result(path: str | Path) -> Result:
    """Read a result file."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    data = path.read_bytes()
    if not data.startswith(_HEADER):
        raise DataError(
            f"{path} is not a result of this version of Atoll",
            hint="load a file that atoll run wrote; its first line names its version",
        )
    try:
        content: _File = codec.decode(memoryview(data)[len(_HEADER) :], _File)
    except MessageError as error:
        raise DataError(f"{path} is damaged: {error.message}") from None
    study = from_plain(content.study)
    as_stated = study.version is None and study.digest_as_stated == content.digest  # a file of 0.1.0
    if study.digest != content.digest and not as_stated:
        raise DataError(f"{path} is damaged: its study does not match its digest")
    return Result(study, _restored(content.outputs), content.transcript, content.certificate, content.booked)


def _restored(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Sequences come back as lists; column names are a tuple everywhere else."""
    return {k: tuple(v) if isinstance(v, list) else _own(v) for k, v in outputs.items()}


def _own(value: Any) -> Any:
    """Arrays of a file are views of its bytes; the caller gets arrays of its own."""
    if isinstance(value, dict):
        return {k: _own(v) for k, v in value.items()}
    return np.array(value) if isinstance(value, np.ndarray) else value


def not_released(study: Study, value: str) -> NotReleased:
    """The error for a value that did not reach the caller: who has it, and what to change."""
    protocol = with_helpers(protocol_of(study.protocol), study)
    for output, o in protocol.outputs.items():
        if value in o.values:
            return NotReleased(
                f"{value} was not released to you; {_who_knows(protocol.knowers(study, value))}",
                hint=f"name the role under [release]: {output} = [...]",
            )
    return NotReleased(f"{study.protocol} has no value called {value}")


def _who_knows(addresses: Sequence[Address]) -> str:
    """ "coast, valley (provider), office (server) know it": as many names as can be read."""
    if not addresses:
        return "nobody knows it"
    roles: dict[str, list[str]] = {}
    for address in addresses:
        roles.setdefault(address.role, []).append(address.party)
    said = [
        f"{', '.join(parties[:3])}{' and others' if len(parties) > 3 else ''} ({role})"
        for role, parties in roles.items()
    ]
    return f"{', '.join(said)} {'knows' if len(addresses) == 1 else 'know'} it"
