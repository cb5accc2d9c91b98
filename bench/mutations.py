"""Which mutations the tests notice: `python bench/mutations.py [NUMBER…]`, all of them without numbers.

Each mutation of `tests/data/mutations.json` is made in a copy of the checkout. It meets the tests of its own
folder first, then those of `make test`, then those of `make test-all`; the first that fails ends it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
MUTATIONS = CHECKOUT / "tests" / "data" / "mutations.json"
_QUIET = ("-x", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider")


def main() -> None:
    mutations = json.loads(MUTATIONS.read_text("utf-8"))
    for number in map(int, sys.argv[1:] or range(len(mutations))):
        mutation = mutations[number]
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            copy = copy_checkout(Path(folder))
            if apply(copy, mutation["module"], mutation["old"], mutation["new"]):
                caught = find_catching(copy, mutation["module"])
            else:
                caught = "does not apply: its line has changed"
        print(f"{number:2} {mutation['module']}: {caught}", flush=True)


def copy_checkout(folder: Path) -> Path:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, folder / name, follow_symlinks=False)
    return folder


def apply(copy: Path, module: str, old: str, new: str) -> bool:
    text = (copy / module).read_text("utf-8")
    (copy / module).write_text(text.replace(f"{old}\n", f"{new}\n"), "utf-8")
    return text.count(f"{old}\n") == 1


def find_catching(copy: Path, module: str) -> str:
    """Run more and more tests until one fails, and name what failed."""
    for name, arguments in (("its folder", own_tests(copy, module)), ("test", []), ("test-all", ["--all"])):
        command = [sys.executable, "-m", "pytest", *_QUIET, *arguments]
        environment = os.environ | {"PYTHONPATH": str(copy)}
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if ran.returncode:
            return f"{name}: {failed[0][:150] if failed else ran.stdout[-150:]}"
    return "not noticed"


def own_tests(copy: Path, module: str) -> list[str]:
    """Return the tests of a module's folder; of a module beside the folders, its own ones."""
    room, *inner = Path(module).parts[1:]
    place = f"tests/{room}" if inner else f"tests/test_{room}"
    return [place if (copy / place).exists() else "tests"]


if __name__ == "__main__":
    main()
