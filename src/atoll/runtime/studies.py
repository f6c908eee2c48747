"""Study files as runs need them: checked against their protocol, with the islands' data at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from atoll.data.island import Island, as_island
from atoll.errors import ParameterError, StudyError, one_of
from atoll.privacy.identities import canonical
from atoll.privacy.ledger import Ledger, site_ledger
from atoll.protocols import protocol_of, resolve
from atoll.protocols.own import Own, owned
from atoll.runtime.aligned import aligned
from atoll.study.load import StudyFile, read_study_file
from atoll.study.model import Local, Study


def load_study(path: str | Path) -> Study:
    """The study in a TOML file, checked; errors name file and line."""
    return open_study(path).study


def open_study(path: str | Path) -> StudyFile:
    """The study file itself, checked: the study with all options, its local matters, and their lines."""
    file = read_study_file(path)
    try:
        file = replace(file, study=resolve(file.study))
        _check_local(file)
        _check_capacities(file)
    except StudyError as error:
        raise file.located(error) from None
    except ParameterError as error:
        # A protocol may refuse a combination of parameters in the words of its estimator.
        place = ("parameters",) if error.option is None else ("parameters", error.option)
        wrong = StudyError(error.message, hint=error.hint, path=place)
        raise file.located(wrong) from None
    return file


def data_holders(study: Study) -> tuple[str, ...]:
    """The parties that bring a table."""
    return protocol_of(study.protocol).table_holders(study)


def _check_local(file: StudyFile) -> None:
    holders = data_holders(file.study)
    for key, named, what in (
        ("data", file.local.data, "data for"),
        ("identities", file.local.identities, "an identity for"),
        ("capacities", file.local.capacities, "a capacity for"),
        ("alignments", file.local.alignments, "an alignment for"),
    ):
        for party in named:
            if party not in holders:
                raise StudyError(
                    f"[local] gives {what} {party!r}, which the study does not name as an island",
                    hint=one_of(party, holders, "its islands are"),
                    path=("local", key, party),
                )
    for party, identity in file.local.identities.items():
        try:
            canonical(identity)
        except ParameterError as error:
            path = ("local", "identities", party)
            raise StudyError(f"{party}: {error.message}", hint=error.hint, path=path) from None


def _check_capacities(file: StudyFile) -> None:
    for party, capacity in file.local.capacities.items():
        if capacity < 1:
            raise StudyError(
                f"the capacity of {party!r} must be a whole number from 1, got {capacity}",
                hint="as many rows as its table could ever have, never a number taken from the rows",
                path=("local", "capacities", party),
            )


def _check_own_files(file: StudyFile) -> None:
    """Two islands with one file would count its rows twice."""
    whose: dict[str, str] = {}
    for party in data_holders(file.study):
        first = whose.setdefault(str(file.local.data[party]), party)
        if first != party and file.study.partition != "vertical":
            raise file.located(
                StudyError(
                    f"{first} and {party} have the same file, whose rows would count twice",
                    hint="every island has a table of its own",
                    path=("local", "data", party),
                )
            )


def read_own(file: StudyFile) -> dict[str, Own]:
    """What each party with a table brings, from the file's ``[local]`` table."""
    missing = [party for party in data_holders(file.study) if party not in file.local.data]
    if missing:
        raise file.located(
            StudyError(
                f"there is no data for {', '.join(missing)}",
                hint=f'[local] data = {{ {missing[0]} = "{missing[0]}.csv", ... }}',
                path=("local", "data"),
            )
        )
    _check_own_files(file)
    islands = {party: as_island(party, file.local.data[party]) for party in data_holders(file.study)}
    for party, capacity in file.local.capacities.items():
        islands[party].capacity = capacity
    for party, path in file.local.alignments.items():
        islands[party] = aligned(islands[party], path)
    return _booked(file, islands)


def ledger_of(study: Study, local: Local) -> Path | None:
    """The ledger that a run of the study uses: the one that is named, or the site's.

    A study with an epsilon does not run without one; an exact study is booked where the site has a ledger
    and the study file says which data sets it uses.
    """
    if local.ledger is not None:
        return Path(local.ledger)
    site = site_ledger()
    return site if _is_private(study) or (local.identities and site.is_file()) else None


def _is_private(study: Study) -> bool:
    terms = protocol_of(study.protocol).privacy(study)
    return terms is not None and bool(terms.costs)


def _booked(file: StudyFile, islands: dict[str, Island]) -> dict[str, Own]:
    """Every island with its identity, its ledger and its owner's conditions."""
    study, local = file.study, file.local
    path = ledger_of(study, local)
    promises_nothing = not _is_private(study) and protocol_of(study.protocol).privacy(study) is not None
    missing = [party for party in islands if party not in local.identities]
    if path is not None and missing and not promises_nothing:
        why = "a private study needs" if _is_private(study) else "a ledger books by data set, and lacks"
        hint = f'[local] identities = {{ {missing[0]} = "the data set as its owner knows it", ... }}'
        wrong = f"{why} the identity of the data of {', '.join(missing)}"
        raise file.located(StudyError(wrong, hint=hint, path=("local",)))
    ledger = None if path is None else Ledger(path)
    for party, island in islands.items():
        island.identity = local.identities.get(party)
    return owned(islands, ledger, min_colluders=local.min_colluders)
