"""What a query answers, read once from a database through ADBC, batch by batch."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from atoll.data.tables.scratch import Scratch
from atoll.errors import DataError, MissingComponent, ParameterError

_DRIVERS: Final = {"sqlite": "adbc_driver_sqlite", "postgresql": "adbc_driver_postgresql"}
_INSTALL: Final = "pip install 'atoll[sql]'"


def read_sql(url: str, query: str) -> Scratch:
    """All rows of the answer, kept until the run is over. No error says the address, which has a password."""
    scheme, _, rest = url.partition("://")
    scheme = {"postgres": "postgresql"}.get(scheme, scheme)
    if scheme not in _DRIVERS or not rest:
        raise ParameterError(
            "the address of a database begins with sqlite:// or postgresql://",
            hint="sqlite:///folder/ward.db (a path after two slashes), postgresql://user@host/name",
        )
    try:
        driver: Any = import_module(f"{_DRIVERS[scheme]}.dbapi")
    except ImportError:
        raise MissingComponent(f"the driver for {scheme} is not installed", hint=_INSTALL) from None
    place = rest.removeprefix("/") if scheme == "sqlite" else f"postgresql://{rest}"
    try:
        with driver.connect(place) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
            return Scratch.filled(reader.schema, reader)
    except DataError:
        raise
    except Exception as error:  # each driver has its own exceptions; their words may quote a value
        raise DataError(
            f"the database did not answer the query ({type(error).__name__})",
            hint="is it running, do the address and the login fit, and does the query run in its own shell?",
        ) from None
