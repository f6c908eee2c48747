"""What every role learned in a run, as a mapping that can be read."""

from __future__ import annotations

from textwrap import fill

from atoll.protocols.base import Learned, described
from atoll.shown import html_table
from atoll.study.address import Address

_HEADER = ("role", "was given", "saw by the protocol's nature")


_WIDTH = 100


def _line(what: str, said: str) -> str:
    return fill(f"{what}: {said}", _WIDTH, initial_indent="  ", subsequent_indent="    ")


class LearnedByRole(dict[Address, Learned]):
    """By address. Looked at, it says what each role has, never the values."""

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (str(address), described(known.outputs) or "nothing", described(known.inherent) or "nothing")
            for address, known in self.items()
        ]

    def __repr__(self) -> str:
        return "\n".join(
            "\n".join((role, _line(_HEADER[1], given), _line(_HEADER[2], seen)))
            for role, given, seen in self._rows()
        )

    def _repr_html_(self) -> str:
        return html_table("What each role learned", _HEADER, self._rows())
