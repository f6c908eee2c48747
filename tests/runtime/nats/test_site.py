"""A site's folder: made on purpose, for its owner alone, with a format, one node at a time."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.crypto.identity import Identity
from atoll.errors import ParameterError, RunError, StudyError
from atoll.runtime.nats import kept
from atoll.runtime.nats import site as sites
from atoll.runtime.nats.site import HubAddress, Site, read_data_sets


def test_a_site_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    with pytest.raises(ParameterError, match="is not a site yet"):
        Site(folder)
    made = Site.make(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for inner in (made.runs, made.requests, made.outbox, made.kept, made.notices):
        assert stat.S_IMODE(inner.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "site.json").stat().st_mode) == 0o600
    assert Site.make(folder).folder == Site(folder).folder == folder


def test_the_site_stands_where_the_ledger_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from atoll.privacy.ledger import site_ledger

    monkeypatch.setenv("ATOLL_HOME", str(tmp_path / "home"))
    made = Site.make()
    assert made.ledger == site_ledger()
    assert made.option == ""
    assert Site.make(tmp_path / "other").option == f" --site {tmp_path / 'other'}"


def test_a_newer_format_is_refused_and_an_older_one_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Site.make(tmp_path / "site")
    (made.folder / "site.json").write_text('{"atoll_site": 3}')
    with pytest.raises(ParameterError, match="has format 3, this version of Atoll reads up to 2"):
        Site(made.folder)
    done: list[int] = []
    monkeypatch.setattr(sites, "FORMAT", 5)
    monkeypatch.setattr(sites, "MIGRATIONS", {3: lambda _: done.append(3), 4: lambda _: done.append(4)})
    Site(made.folder)
    Site(made.folder)
    assert done == [3, 4]
    (made.folder / "site.json").write_text("{")
    with pytest.raises(ParameterError, match="is damaged"):
        Site(made.folder)


def test_a_site_of_format_1_has_its_shares_sealed(tmp_path: Path) -> None:
    made = Site.make(tmp_path / "site")
    key = Identity.new()
    key.save(made.identity_file)
    folder = made.kept / "0123456789abcdef"
    folder.mkdir()
    (folder / "provider").write_bytes(b"a share of session 7")
    (made.folder / "site.json").write_text('{"atoll_site": 1}')
    Site(made.folder)
    assert [path.name for path in folder.iterdir()] == ["provider.sealed"]
    assert b"session" not in (folder / "provider.sealed").read_bytes()
    assert kept.find(made.kept, key, b"session 7") == {"provider": b"a share of session 7"}
    assert (made.folder / "site.json").read_bytes() == b'{"atoll_site":2}'


def test_kept_shares_open_with_the_site_s_keys_alone(tmp_path: Path) -> None:
    made, key, other = Site.make(tmp_path / "site"), Identity.new(), Identity.new()
    kept.keep(made.kept, key.public, "one", "provider", b"share of session 1")
    kept.keep(made.kept, key.public, "two", "provider", b"share of session 2")
    assert kept.find(made.kept, key, b"session 2") == {"provider": b"share of session 2"}
    for wrong, session in ((other, b"session 2"), (key, b"session 3")):
        with pytest.raises(ParameterError, match="kept no share"):
            kept.find(made.kept, wrong, session)
    kept.reseal(made.kept, key, other.public)
    assert kept.find(made.kept, other, b"session 1") == {"provider": b"share of session 1"}
    # A share that was moved to another run does not pass for one of that run.
    (made.kept / "one" / "provider.sealed").replace(made.kept / "two" / "provider.sealed")
    with pytest.raises(ParameterError, match="kept no share"):
        kept.find(made.kept, other, b"session 1")


def test_one_node_at_a_time_also_across_processes(tmp_path: Path) -> None:
    made = Site.make(tmp_path / "site")
    assert not made.node_runs()
    probe = (
        "import sys; from pathlib import Path; from atoll.runtime.nats.site import Site\n"
        "sys.exit(Site(Path(sys.argv[1])).node_runs())"
    )
    with made.locked():
        other = subprocess.run([sys.executable, "-c", probe, str(made.folder)], check=False)
        assert other.returncode == 1
        with pytest.raises(RunError, match="is running already"), Site(made.folder).locked():
            pass
    assert not made.node_runs()


def test_identity_hub_and_partners_are_kept(tmp_path: Path) -> None:
    made = Site.make(tmp_path / "site")
    with pytest.raises(ParameterError, match="no identity"):
        made.identity()
    key = Identity.new()
    key.save(made.identity_file)
    assert made.identity().fingerprint == made.fingerprint == key.fingerprint
    assert not made.needs_passphrase
    with pytest.raises(ParameterError, match="has not joined a hub"):
        made.hub()
    made.set_hub(HubAddress("tls://hub:4222", "PEM", "north"))
    assert Site(made.folder).hub() == HubAddress("tls://hub:4222", "PEM", "north")
    assert made.partners() == {}
    made.set_partner("south", "ab" * 32)
    assert Site(made.folder).partners() == {"south": "ab" * 32}
    made.set_partner("south", None)
    assert made.partners() == {}


def test_data_sets_are_one_table_or_a_list_of_them(tmp_path: Path) -> None:
    table = tmp_path / "patients.csv"
    table.write_text("a\n1\n")
    assert read_data_sets(table)[""].path == str(table)
    listed = tmp_path / "data.toml"
    listed.write_text('[icu]\npath = "patients.csv"\nidentity = "ICU 2024"\ncapacity = 9\n')
    one = read_data_sets(listed)["icu"]
    assert (one.path, one.identity, one.capacity) == (str(table), "ICU 2024", 9)
    with pytest.raises(ParameterError, match="there is no file"):
        read_data_sets(tmp_path / "none.csv")
    listed.write_text("[icu]\nfile = 1\n")
    with pytest.raises(StudyError, match="has no 'file'"):
        read_data_sets(listed)
