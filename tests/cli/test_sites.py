"""Commands about a site that need no hub: keys, partners, pins, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.running import atoll

from atoll.runtime.nats.site import HubAddress, Site
from atoll.study.load import read_study_file
from atoll.study.pins import pinned_text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATOLL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def made(*options: str) -> str:
    assert atoll("identity", "new", *options).code == 0
    return atoll("identity", "show", "--fingerprint", *options[-2:]).out.strip()


def test_keys_are_made_once_and_shown_in_digits_and_words(home: Path) -> None:
    first = atoll("identity", "new")
    assert first.code == 0
    shown = json.loads(atoll("identity", "show", "--json").out)
    assert shown["fingerprint"] in first.out
    assert shown["words"] in first.out
    assert len(shown["words"].split("-")) == 8
    assert atoll("identity", "show", "--fingerprint").out == shown["fingerprint"] + "\n"
    again = atoll("identity", "new")
    assert again.code == 2
    assert "is already there" in again.err
    assert (home / "identity.json").stat().st_mode & 0o077 == 0


def test_keys_can_be_sealed(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    assert "others on this machine can read" in atoll("identity", "new", "--passphrase-file", str(secret)).err
    secret.chmod(0o600)
    assert atoll("identity", "new", "--passphrase-file", str(secret)).code == 0
    assert json.loads(atoll("identity", "show", "--json").out)["sealed"]
    secret.write_text("wrong\n")
    assert "does not open" in atoll("identity", "revoke", "--passphrase-file", str(secret)).err


def test_partners_are_noted_replaced_and_revoked(home: Path, tmp_path: Path) -> None:
    made()
    other = ("--site", str(tmp_path / "other"))
    old = made(*other)
    assert atoll("identity", "trust", "south", old.upper()).code == 0
    assert "64 hexadecimal" in atoll("identity", "trust", "south", "abc").err
    rotated = atoll("identity", "rotate", *other)
    assert rotated.code == 0, rotated.err
    new = atoll("identity", "show", "--fingerprint", *other).out.strip()
    assert new != old
    (notice,) = (tmp_path / "other" / "notices").glob("rotated-*")
    assert f"south is now {new}" in atoll("identity", "accept", str(notice)).out
    assert Site(home).partners() == {"south": new}
    void = (tmp_path / "other" / "identity.json").read_bytes()
    assert atoll("identity", "revoke", *other).code == 0
    assert not (tmp_path / "other" / "identity.json").exists()  # keys declared void sign nothing more
    assert (tmp_path / "other" / f"identity-{new[:16]}.revoked").read_bytes() == void
    (notice,) = (tmp_path / "other" / "notices").glob("revoked-*")
    assert "not to be trusted any more" in atoll("identity", "accept", str(notice)).out
    assert Site(home).partners() == {}
    data = bytearray(notice.read_bytes())
    data[-1] ^= 1
    notice.write_bytes(data)
    assert atoll("identity", "accept", str(notice)).code == 5


STUDY = """\
# two of them
[study]
name = "icu"      # kept
protocol = "pppca"
[parameters]
n_components = 1
[[party]]
name = "north"
role = "provider"
[[party]]
  role = "provider"
  name = "south"
[[party]]
name = "office"
roles = ["server", "consumer"]
fingerprint = "%s"
[release]
components = ["consumer"]
""" % ("ab" * 32)


def test_fingerprints_are_written_into_a_study_beside_the_names(tmp_path: Path) -> None:
    text, missing = pinned_text(STUDY, {"north": "12" * 32, "office": "34" * 32})
    assert missing == ["south"]
    path = tmp_path / "study.toml"
    path.write_text(text)
    read = {party.name: party.fingerprint for party in read_study_file(path).study.parties}
    assert read == {"north": "12" * 32, "south": None, "office": "ab" * 32}
    assert [line for line in text.splitlines() if "fingerprint" not in line] == [
        line for line in STUDY.splitlines() if "fingerprint" not in line
    ]
    assert pinned_text(text, {"north": "99" * 32})[0] == text


def test_a_study_is_pinned_with_this_sites_own_key_too(home: Path, tmp_path: Path) -> None:
    mine = made()
    Site(home).set_hub(HubAddress("tls://hub:4222", "", "north"))
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    pinned = atoll("study", "pin", str(path))
    assert "no fingerprint of south is noted here" in pinned.err
    assert read_study_file(path).study.parties[0].fingerprint == mine


def test_a_study_without_fingerprints_is_not_submitted_and_the_line_is_named(
    home: Path, tmp_path: Path
) -> None:
    made()
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    refused = atoll("study", "submit", str(path))
    assert refused.code == 4
    assert "study.toml:7" in refused.err
    assert "'north' has no fingerprint" in refused.err
    path.write_text(pinned_text(STUDY, {"north": "12" * 32, "south": "34" * 32})[0])
    refused = atoll("study", "submit", str(path))
    assert refused.code == 2
    assert "this site is no party of the study" in refused.err


def test_what_needs_a_node_or_a_hub_says_so(home: Path) -> None:
    assert "is not a site yet" in atoll("node", "status").err
    made()
    assert "no run begins" in atoll("study", "status", "abc").err
    assert "has not joined a hub" in atoll("node", "run").err
    assert "no run waits" in atoll("node", "approve").err
    assert "not running" in atoll("node", "status").out
    assert json.loads(atoll("node", "runs", "--json").out) == []
    assert "not an invitation" in atoll("node", "join", "hello").err
    assert "no node of this site is running" in atoll("node", "decline", "abc").err
    assert "64 hexadecimal" in atoll("node", "run", "--approve", "abc").err
    assert "leaves tables where they are" in atoll("run", "study.toml", "--engine", "nats").err


def test_a_study_is_rehearsed_without_its_rows(folder: Path) -> None:
    (folder / "north.csv").write_text("a,b,c,d,kind\n" + ",,,,\n1,2,3,4,x\n")  # a run would refuse holes
    done = atoll("check", "study.toml", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["messages"] > 10
