"""Helix, with the settings of docs/editors.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.editors.installed import environment, read_settings, require


def test_the_server_is_found(tmp_path: Path) -> None:
    settings = tmp_path / "home/.config/helix/languages.toml"
    own = environment(tmp_path / "home") | {"XDG_CONFIG_HOME": str(settings.parents[1])}
    settings.parent.mkdir(parents=True)
    settings.write_text(read_settings("Helix", "toml"))
    asked = [require("debian_editors", "hx"), "--health", "markdown"]
    printed = subprocess.run(asked, env=own, capture_output=True, text=True, check=True, timeout=60).stdout
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    assert f"✓ mdmem: {Path(sys.executable).parent}/mdmem" in plain
    assert "marksman" not in plain
