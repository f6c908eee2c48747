"""Where each key of a TOML text stands.

``tomllib`` gives values without their lines. This walks the same text, once ``tomllib`` has accepted
it, and notes the line of every table, key and list element; so it never has to judge the syntax.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

Path = tuple[str | int, ...]

_SPACE = " \t"
_BLANK = " \t\r\n"
_ENDS_SCALAR = ",]}#\r\n"


class Places:
    """Line numbers, counted from 1, by path: ``("party", 0, "name")``."""

    def __init__(self, text: str) -> None:
        self._lines = _Walker(text).lines

    def holds(self, path: Sequence[str | int]) -> bool:
        """Whether the text has a place for exactly ``path``."""
        return tuple(path) in self._lines

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line of ``path``, or of the nearest thing around it that the text holds."""
        for end in range(len(path), 0, -1):
            line = self._lines.get(tuple(path[:end]))
            if line is not None:
                return line
        return None


class _Walker:
    """Reads a TOML text that is known to be valid."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = 0
        self._line = 1
        self.lines: dict[Path, int] = {}
        self._array_tables: dict[Path, int] = {}
        self._document()

    # ---- structure ----

    def _document(self) -> None:
        table: Path = ()
        while self._skip(_BLANK):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        line = self._here()
        array = self._peek("[[")
        self._at += 2 if array else 1
        path = self._inside_arrays(self._key())
        self._at += 2 if array else 1
        if array:
            self._note(path, line)
            number = self._array_tables.get(path, -1) + 1
            self._array_tables[path] = number
            path = (*path, number)
        self._note(path, line)
        return path

    def _inside_arrays(self, names: Sequence[str]) -> Path:
        """A header under an array of tables means its latest element."""
        path: Path = ()
        for position, name in enumerate(names):
            path = (*path, name)
            if path in self._array_tables and position < len(names) - 1:
                path = (*path, self._array_tables[path])
        return path

    def _pair(self, table: Path) -> None:
        line = self._here()
        path = table
        for name in self._key():
            path = (*path, name)
            self._note(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        if self._peek("["):
            self._list(path)
        elif self._peek("{"):
            self._inline_table(path)
        elif self._peek('"') or self._peek("'"):
            self._string()
        else:
            while self._at < len(self._text) and self._text[self._at] not in _ENDS_SCALAR:
                self._at += 1

    def _list(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._skip(_BLANK + ",") and not self._peek("]"):
            self._note((*path, number), self._here())
            self._value((*path, number))
            number += 1
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._skip(_BLANK + ",") and not self._peek("}"):
            self._pair(path)
        self._at += 1

    # ---- tokens ----

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip(_SPACE)
            names.append(self._name())
            self._skip(_SPACE)
            if not self._peek("."):
                return names
            self._at += 1

    def _name(self) -> str:
        start = self._at
        if self._peek('"') or self._peek("'"):
            self._string()
            quoted: str = tomllib.loads(f"k = {self._text[start : self._at]}")["k"]
            return quoted
        while self._text[self._at].isalnum() or self._text[self._at] in "-_":
            self._at += 1
        return self._text[start : self._at]

    def _string(self) -> None:
        quote = self._text[self._at]
        closing = quote * 3 if self._peek(quote * 3) else quote
        self._at += len(closing)
        while not self._peek(closing):
            self._at += 2 if quote == '"' and self._peek("\\") else 1
        self._at += len(closing)
        while len(closing) == 3 and self._peek(quote):  # quotes right before the closing ones
            self._at += 1

    def _skip(self, blanks: str) -> bool:
        """Over blanks and, where lines may end, comments; whether anything is left."""
        while self._at < len(self._text):
            if self._peek("#") and "\n" in blanks:
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._text[self._at] in blanks:
                self._at += 1
            else:
                return True
        return False

    def _peek(self, token: str) -> bool:
        return self._text.startswith(token, self._at)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _note(self, path: Path, line: int) -> None:
        self.lines.setdefault(path, line)
