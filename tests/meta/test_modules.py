"""Every module can be imported alone, and public names are where they are said to be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import atoll

SOURCE = Path(__file__).parents[2] / "src"

# A process that has loaded the slow third-party packages, but nothing of Atoll, forks once for each
# module: the child imports that module into a fresh ``atoll``.
FORKS = """
import importlib, os, sys, traceback
for slow in ("numpy", "pandas", "scipy.linalg", "sklearn.base", "sklearn.decomposition", "sklearn.datasets",
             "matplotlib.figure", "msgspec", "typer", "rich.console", "cryptography"):
    try:
        importlib.import_module(slow)
    except ImportError:
        pass
assert not any(name.split(".")[0] == "atoll" for name in sys.modules)
failed = 0
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(module)
        except BaseException:
            print(f"--- {module}", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
sys.exit(min(failed, 100))
"""


def modules() -> list[str]:
    paths = [path.relative_to(SOURCE).with_suffix("") for path in sorted((SOURCE / "atoll").rglob("*.py"))]
    dotted = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    return [name for name in dotted if not name.endswith("__main__")]


def test_every_module_imports_alone() -> None:
    found = modules()
    assert len(found) > 30
    done = subprocess.run([sys.executable, "-c", FORKS, *found], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_where_they_are_said_to_be() -> None:
    assert sorted(atoll._HOMES) == sorted(atoll.__all__)
    for name in atoll.__all__:
        assert getattr(atoll, name).__name__ == name
        assert name in dir(atoll)
    assert not hasattr(atoll, "nothing_of_the_kind")


def test_the_command_line_starts_without_the_slow_packages() -> None:
    probe = (
        "import sys, atoll.cli\n"
        "slow = {'pandas', 'sklearn', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)
