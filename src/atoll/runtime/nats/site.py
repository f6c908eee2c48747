"""One site's folder: keys, way to the hub, partners, policy, proposals, runs and their results.

The folder is the one of the site's ledger. It has a format number; an older one is brought up to date when
a command opens it, a newer one is refused. One process at a time is the site's node: it holds a lock, and
others hand it requests as files. Everything is readable by its owner alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from atoll.crypto.identity import Identity, needs_passphrase, public_of
from atoll.errors import ParameterError, RunError
from atoll.privacy.ledger_file import site_ledger
from atoll.runtime.nats import kept
from atoll.runtime.result import write_whole
from atoll.study.tables import read_table

FORMAT: Final = 2
PATIENCE: Final = 2.0
"""Seconds for which a node that starts waits for the lock."""

S = TypeVar("S", bound=msgspec.Struct)


class _Site(msgspec.Struct, frozen=True):
    """The file that says what the folder is."""

    atoll_site: int


class DataSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the site: where it lies, which data set it is to the ledger, and the result of the
    alignment that put its rows in order."""

    path: str
    identity: str | None = None
    capacity: int | None = None
    alignment: str | None = None


class HubAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The way to the hub: what joining left behind."""

    url: str
    ca: str = ""
    """The hub's own certificate authority, as PEM; empty where the system's are meant."""
    name: str = ""
    """What the site is called at the hub."""


def site_folder() -> Path:
    """Where the site's ledger is: ``$ATOLL_HOME``, else where the user's data stand."""
    return site_ledger().parent


class Site:
    """The folder, opened."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or site_folder()).absolute()
        form = self._form()
        if form is None:
            raise ParameterError(
                f"{self.folder} is not a site yet",
                hint=f"make its keys first: atoll identity new{self.option}",
            )
        if form > FORMAT:
            raise ParameterError(
                f"the site {self.folder} has format {form}, this version of Atoll reads up to {FORMAT}",
                hint="use the newer version that wrote it",
            )
        for number in range(form, FORMAT):
            MIGRATIONS[number](self.folder)
            _write_form(self.folder, number + 1)

    def __repr__(self) -> str:
        return f"<Site {self.folder}>"

    @classmethod
    def make(cls, folder: Path | None = None) -> Site:
        """The folder, made where there is none; an existing one is opened."""
        folder = (folder or site_folder()).absolute()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / "site.json").exists():
                _write_form(folder, FORMAT)
        except OSError as error:
            raise ParameterError(f"cannot make the site {folder}: {error.strerror}") from None
        return cls(folder)

    def _form(self) -> int | None:
        try:
            data = (self.folder / "site.json").read_bytes()
            return msgspec.json.decode(data, type=_Site).atoll_site
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.DecodeError):
            raise ParameterError(
                f"{self.folder / 'site.json'} is damaged or cannot be read", hint="restore the site's folder"
            ) from None

    @property
    def option(self) -> str:
        """How commands name this site, where it is not the usual one."""
        return "" if self.folder == site_folder().absolute() else f" --site {self.folder}"

    # ---- files ----

    @property
    def identity_file(self) -> Path:
        return self.folder / "identity.json"

    @property
    def hub_file(self) -> Path:
        return self.folder / "hub.json"

    @property
    def partners_file(self) -> Path:
        return self.folder / "partners.json"

    @property
    def policy_file(self) -> Path:
        return self.folder / "policy.toml"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def log_file(self) -> Path:
        return self.folder / "node.log"

    @property
    def notices(self) -> Path:
        """Signed notices that keys are replaced or revoked: own and others'."""
        return self._made("notices")

    @property
    def runs(self) -> Path:
        """A folder for each proposed run, ended or not: approvals, journal, result, receipt."""
        return self._made("runs")

    @property
    def requests(self) -> Path:
        """What other commands ask of the node."""
        return self._made("requests")

    @property
    def outbox(self) -> Path:
        """Control messages that their receivers have not acknowledged."""
        return self._made("outbox")

    @property
    def kept(self) -> Path:
        """Shares that roles keep for later steps, by run, sealed (:mod:`~atoll.runtime.nats.kept`)."""
        return self._made("kept")

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    # ---- identity, hub, partners ----

    def identity(self, passphrase: str | None = None) -> Identity:
        """The site's keys."""
        return Identity.load(self.identity_file, passphrase)

    @property
    def needs_passphrase(self) -> bool:
        return needs_passphrase(self.identity_file)

    @property
    def fingerprint(self) -> str:
        return public_of(self.identity_file).fingerprint

    def hub(self) -> HubAddress:
        """The way to the hub."""
        try:
            return msgspec.json.decode(self.hub_file.read_bytes(), type=HubAddress)
        except FileNotFoundError:
            raise ParameterError(
                "this site has not joined a hub",
                hint=f"atoll node join INVITATION{self.option} (the hub's owner gives you the invitation)",
            ) from None
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise ParameterError(f"{self.hub_file} is damaged", hint="join again") from None

    def set_hub(self, hub: HubAddress) -> None:
        write_whole(self.hub_file, msgspec.json.encode(hub))

    def partners(self) -> dict[str, str]:
        """Names that this site gave to fingerprints it compared."""
        try:
            return msgspec.json.decode(self.partners_file.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise ParameterError(
                f"{self.partners_file} is damaged", hint="restore it, or delete it"
            ) from None

    def set_partner(self, name: str, fingerprint: str | None) -> None:
        """Note a partner's fingerprint; None forgets the partner."""
        partners = self.partners()
        if fingerprint is None:
            partners.pop(name, None)
        else:
            partners[name] = fingerprint
        write_whole(self.partners_file, msgspec.json.encode(partners, order="sorted"))

    # ---- the node's lock ----

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the site's node: nobody else is, and two would contradict each other."""
        handle = os.open(self.folder / "node.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            until = time.monotonic() + PATIENCE
            while not _try_lock(handle, fcntl.LOCK_EX):
                if time.monotonic() > until:
                    raise RunError(
                        f"a node of the site {self.folder} is running already",
                        hint="one site has one node; atoll node status shows what it does",
                    )
                time.sleep(0.05)  # somebody may be looking whether a node runs
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(handle)

    def node_runs(self) -> bool:
        """Whether some process is this site's node."""
        handle = os.open(self.folder / "node.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            return not _try_lock(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_data_sets(given: str | Path) -> dict[str, DataSet]:
    """``--data``: one table, or a TOML file of tables by name.

    In a TOML file each table ``[name]`` has ``path`` and may have ``identity``, ``capacity`` and
    ``alignment`` (the result file of one); paths count from its folder.
    """
    path = Path(given)
    if path.suffix != ".toml":
        if not path.is_file():
            raise ParameterError(
                f"there is no file {path}", hint="--data takes a table, or a TOML file of tables"
            )
        return {"": DataSet(path=str(path.absolute()))}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is not valid TOML: {error}") from None
    return {name: _data_set(path, name, table) for name, table in document.items()}


def _data_set(file: Path, name: str, table: Any) -> DataSet:
    if not isinstance(table, dict):
        raise ParameterError(f"{file}: {name} must be a table", hint=f'[{name}] and below it path = "..."')
    one = read_table(table, DataSet, (name,))
    alignment = None if one.alignment is None else str((file.parent / one.alignment).absolute())
    path = str((file.parent / one.path).absolute())
    return msgspec.structs.replace(one, path=path, alignment=alignment)


def write_json(path: Path, value: Any) -> None:
    """Plain data, replaced in one step."""
    write_whole(path, msgspec.json.encode(value))


def read_json(path: Path, kind: type[S]) -> S | None:
    """A struct that :func:`write_json` wrote; None where there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise RunError(f"{path} is damaged", hint="restore the site's folder from its backup") from None


def remove(folder: Path) -> None:
    """A folder and all in it, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def _write_form(folder: Path, form: int) -> None:
    write_json(folder / "site.json", _Site(form))


MIGRATIONS: dict[int, Callable[[Path], None]] = {1: kept.seal_plain}
"""From one format to the next, by the older one's number."""
