"""A shell that has read the script completes commands and options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.running import atoll

HERE = str(Path(sys.executable).parent)


def complete(*words: str) -> list[str]:
    """What bash offers for the last word."""
    typed = " ".join(f"'{word}'" for word in words)
    script = (
        'eval "$(atoll completion bash)"\n'
        f"COMP_WORDS=({typed})\nCOMP_CWORD={len(words) - 1}\n"
        '_atoll_completion atoll\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{HERE}:/usr/bin:/bin", "HOME": "/tmp"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_and_options() -> None:
    assert complete("atoll", "rev") == ["review"]
    assert set(complete("atoll", "ledger", "se")) == {"set-budget"}
    assert complete("atoll", "review", "--mark") == ["--markdown"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_atoll(shell: str) -> None:
    finished = atoll("completion", shell)
    assert (finished.code, finished.err) == (0, "")
    assert "_ATOLL_COMPLETE" in finished.out


def test_another_shell_is_refused() -> None:
    refused = atoll("completion", "basch")
    assert refused.code == 2
    assert "hint: did you mean 'bash'?" in refused.err
