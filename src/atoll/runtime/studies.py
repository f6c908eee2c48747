"""Study files as runs need them: checked against their protocol, with the islands' data at hand."""

from __future__ import annotations

from pathlib import Path

from atoll.data.island import Island, as_island
from atoll.errors import ParameterError, StudyError, one_of
from atoll.protocols import check_study, protocol_of
from atoll.study.load import StudyFile, read_study_file
from atoll.study.model import Study


def load_study(path: str | Path) -> Study:
    """The study in a TOML file, checked; errors name file and line."""
    return open_study(path).study


def open_study(path: str | Path) -> StudyFile:
    """The study file itself, checked: the study, its local matters and the lines they stand on."""
    file = read_study_file(path)
    try:
        check_study(protocol_of(file.study.protocol), file.study)
        _check_local(file)
    except StudyError as error:
        raise file.located(error) from None
    except ParameterError as error:
        # A protocol may refuse a combination of parameters in the words of its estimator.
        wrong = StudyError(error.message, hint=error.hint, path=("parameters",))
        raise file.located(wrong) from None
    return file


def data_holders(study: Study) -> tuple[str, ...]:
    """The parties that bring a table."""
    roles = protocol_of(study.protocol).data_roles
    return tuple(party.name for party in study.parties if roles & set(party.roles))


def _check_local(file: StudyFile) -> None:
    holders = data_holders(file.study)
    for party in file.local.data:
        if party not in holders:
            raise StudyError(
                f"[local] gives data for {party!r}, which the study does not name as an island",
                hint=one_of(party, holders, "its islands are"),
                path=("local", "data", party),
            )


def read_islands(file: StudyFile) -> dict[str, Island]:
    """Every island's table, from the paths in the file's ``[local]`` table."""
    missing = [party for party in data_holders(file.study) if party not in file.local.data]
    if missing:
        raise file.located(
            StudyError(
                f"there is no data for {', '.join(missing)}",
                hint=f'[local] data = {{ {missing[0]} = "{missing[0]}.csv", ... }}',
                path=("local", "data"),
            )
        )
    return {party: as_island(party, file.local.data[party]) for party in data_holders(file.study)}
