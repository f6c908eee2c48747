"""Shares that roles keep for later steps, in the site's folder: sealed, so that a copy of the folder says
nothing without the site's identity."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atoll.crypto.identity import Identity, PublicIdentity, public_of
from atoll.errors import MessageError, ParameterError
from atoll.runtime.result import write_whole

_SEALED: Final = ".sealed"


def keep(kept: Path, public: PublicIdentity, run: str, role: str, share: bytes) -> None:
    """One role's share of one run; written again, it is the same share."""
    folder = kept / run
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(folder / f"{role}{_SEALED}", public.seal_for(share, _context(run, role)))


def find(kept: Path, identity: Identity, session: bytes) -> dict[str, bytes]:
    """Role -> what it kept of the run with this session."""
    for folder in sorted(kept.iterdir()):
        shares = _opened(folder, identity)
        if any(session in share for share in shares.values()):
            return shares
    raise ParameterError("this site kept no share of that run", hint="it was kept by another site, or lost")


def reseal(kept: Path, old: Identity, public: PublicIdentity) -> None:
    """For new keys of the site."""
    for folder in kept.iterdir():
        for role, share in _opened(folder, old).items():
            keep(kept, public, folder.name, role, share)


def seal_plain(site: Path) -> None:
    """Sites of format 1 kept shares as they are."""
    for path in (site / "kept").glob("*/*"):
        if path.suffix != _SEALED:
            public = public_of(site / "identity.json")
            keep(site / "kept", public, path.parent.name, path.name, path.read_bytes())
            path.unlink()


def _opened(folder: Path, identity: Identity) -> dict[str, bytes]:
    """What this identity can open; shares of keys that are gone are nobody's any more."""
    shares = {}
    for path in folder.glob(f"*{_SEALED}"):
        try:
            shares[path.stem] = identity.unseal(path.read_bytes(), _context(folder.name, path.stem))
        except MessageError:
            continue
    return shares


def _context(run: str, role: str) -> str:
    return f"kept share of {role} in {run}"
