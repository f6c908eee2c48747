"""One exception tree; every error says what is wrong and, as a hint, what to do.

AtollError                      exit 1
├── ParameterError              exit 2   an option or argument is wrong (also a ValueError)
├── DataError                   exit 3   an island's table is wrong: names island, column, row
│   ├── SchemaError             exit 3   islands disagree on columns or types
│   └── RangeOverflow           exit 3   a value does not fit the fixed-point grid
├── StudyError                  exit 4   a study file is wrong: names file and line
├── NotReleased                 exit 4   the study does not release this output to you
├── RunError                    exit 5   the run failed
│   ├── RoleFailed              exit 5   one role raised; names it
│   ├── Deadlock                exit 5   every role waits; says who waits for what
│   ├── PartyLeft               exit 5   a party left and the protocol needs it
│   ├── ResumeRefused       exit 5   a run cannot go on from this folder: an old journal, other rows
│   ├── PartyDoubled        exit 5   one party takes part twice: a copy of its node runs somewhere
│   ├── CertificateRefused      exit 5   a result is not certified to be accurate enough
│   ├── NotWritten              exit 5   a run finished, and its result could not be written where it should
│   └── MessageError            exit 5   a message is malformed, unexpected, too large or forged
│       └── KeyMismatch         exit 5   a ciphertext or envelope was made under another key
├── PrivacyError                exit 6   a privacy rule refuses this
│   └── BudgetExceeded          exit 6   the island's privacy budget does not cover the release
└── MissingComponent            exit 7   an optional part (the Go library, a package) is not here
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar


class AtollError(Exception):
    """Base of everything Atoll raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.role: str | None = None
        """The role that raised it, where a run did."""

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


class ParameterError(AtollError, ValueError):
    """An option or argument is wrong. ``option``: its name, which a study file has as a key."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, option: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.option = option


class DataError(AtollError, ValueError):
    """An island's table is wrong."""

    exit_code = 3


class SchemaError(DataError):
    """Islands disagree on columns or types."""


class RangeOverflow(DataError, OverflowError):
    """A value does not fit the fixed-point grid. ``entry``: which one of a vector's."""

    def __init__(self, message: str, *, hint: str | None = None, entry: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.entry = entry


class StudyError(AtollError, ValueError):
    """A study is wrong. ``path`` says where, in a study file's own keys: ``("party", 1, "roles", 0)``."""

    exit_code = 4

    def __init__(
        self, message: str, *, hint: str | None = None, path: tuple[str | int, ...] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class NotReleased(AtollError, AttributeError):
    """The study does not release this output to the caller."""

    exit_code = 4


class RunError(AtollError, RuntimeError):
    """A run failed."""

    exit_code = 5


class RoleFailed(RunError):
    """One role raised; the others were ended."""

    def __init__(self, role: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{role} failed: {message}", hint=hint)
        self.role = role


class Deadlock(RunError):
    """Every role waits for a message that nobody will send."""


class PartyLeft(RunError):
    """A party left the run and the protocol cannot go on without it. ``missing``: whom nobody heard any
    more."""

    missing: tuple[str, ...] = ()


class ResumeRefused(RunError):
    """A run cannot go on from this folder: its journal is old, was changed, or the rows or programs were."""


class PartyDoubled(RunError):
    """One party takes part twice: a copy of its node runs somewhere."""


class CertificateRefused(RunError):
    """The accuracy certificate does not vouch for the result."""


class NotWritten(RunError):
    """A run finished, and its result could not be written where it should; the hint says where it is."""


class MessageError(RunError):
    """A message is malformed, unexpected, too large or forged."""


class KeyMismatch(MessageError):
    """A ciphertext or envelope was made under another key."""


class PrivacyError(AtollError):
    """A privacy rule refuses this."""

    exit_code = 6


class BudgetExceeded(PrivacyError):
    """The island's privacy budget does not cover the release."""


class MissingComponent(AtollError, ImportError):
    """An optional part of Atoll is not installed here."""

    exit_code = 7


class DataWarning(UserWarning):
    """Something of a table is left out."""


class PrivacyWarning(UserWarning):
    """A study runs as asked, but discloses more than its user may expect."""


@contextmanager
def named(island: str) -> Iterator[None]:
    """What is wrong with a table, in the name of its island."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{island}: {error.message}", hint=error.hint) from None


def several(problems: Sequence[DataError]) -> DataError:
    """The one error for tables of several islands: every problem is named, with the first one's hint."""
    first = problems[0]
    if len(problems) == 1:
        return first
    kind = SchemaError if all(isinstance(problem, SchemaError) for problem in problems) else DataError
    said = "; ".join(problem.message for problem in problems[:_SHOWN])
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return kind(f"{len(problems)} islands have problems: {said}{more}", hint=first.hint)


_SHOWN = 10


def one_of(given: str, known: Iterable[str], what: str = "one of") -> str:
    """A hint that lists what is known, led by the name that was probably meant."""
    known = list(known)
    near = difflib.get_close_matches(given, known, n=1)
    listing = f"{what} {', '.join(known)}"
    return f"did you mean {near[0]!r}? {listing}" if near else listing


class MissingIslands(UserWarning):
    """Some islands left during the run, as the study allows; the result is of the others."""
