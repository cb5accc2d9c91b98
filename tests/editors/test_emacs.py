"""Emacs without a screen, with eglot and the settings of docs/editors.md."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.editors.installed import environment, read_settings, require

if TYPE_CHECKING:
    from pathlib import Path

# Emacs reads what the server says only while it waits.
WAIT = """
(require 'cl-lib)
(require 'markdown-mode)
(defun until (is-so)
  (let ((end (+ (float-time) 60)))
    (while (not (funcall is-so))
      (when (> (float-time) end) (error "not so: %S" is-so))
      (accept-process-output nil 0.05))))
(defun visit (file)
  (find-file file)
  (run-hooks 'post-command-hook) ; after which eglot starts
  (until (lambda () (eglot-current-server))))
(defun place (xref)
  (let ((location (xref-item-location xref)))
    (vector (file-relative-name (xref-location-group location) root) (xref-location-line location))))
(defun places (find) ; what is found of what stands at point
  (cl-map 'vector #'place (funcall find 'eglot (xref-backend-identifier-at-point 'eglot))))
(defun finding (found)
  (vector (buffer-substring (flymake-diagnostic-beg found) (flymake-diagnostic-end found))
          (flymake-diagnostic-text found)))
(defun tell (value) (princ (json-encode value)))
"""
NOTES = {
    "hub.md": "# Hub\n\n## Deep 🦊 heading\n\nText.\n",
    "first.md": "# First\n\n🦊🦊 to [[hub#Deep 🦊 heading]].\n",
    "second.md": "# Second\n\n🦊 [hub](hub.md), and [[missing]].\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "memories/.mdmem").mkdir(parents=True)
    (tmp_path / "memories/.mdmem/config.toml").touch()
    (tmp_path / "memories/notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "memories/notes" / name).write_text(text)
    return tmp_path


def tell(root: Path, script: str) -> Any:
    """Return what a script of Emacs Lisp tells."""
    file = root / "script.el"
    folder = f"{root / 'memories/notes'}/"
    file.write_text(f'{WAIT}\n(setq root "{folder}")\n{read_settings("Emacs", "elisp")}\n{script}')
    emacs = [require("debian_editors", "emacs"), "-Q", "--batch", "--load", str(file)]
    own = environment(root / "home")
    done = subprocess.run(emacs, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_findings_are_shown(root: Path) -> None:
    told = tell(
        root,
        """
        (visit "second.md")
        (until (lambda () (flymake-diagnostics)))
        (tell (cl-map 'vector #'finding (flymake-diagnostics)))
        """,
    )
    [[marked, message]] = told
    assert "missing" in marked
    assert "missing" in message


def test_a_definition_is_found_behind_emojis(root: Path) -> None:
    told = tell(
        root,
        """
        (visit "first.md")
        (search-forward "Deep")
        (tell (places #'xref-backend-definitions))
        """,
    )
    assert told == [["hub.md", 3]]


def test_references_are_found(root: Path) -> None:
    told = tell(
        root,
        """
        (visit "first.md")
        (search-forward "hub")
        (tell (places #'xref-backend-references))
        """,
    )
    assert sorted(told) == [["first.md", 3], ["hub.md", 1], ["second.md", 3]]


def read_notes(root: Path) -> dict[str, str]:
    notes = root / "memories/notes"
    return {str(file.relative_to(notes)): file.read_text() for file in notes.rglob("*.md")}


def test_a_renamed_heading_takes_its_links_along(root: Path) -> None:
    tell(
        root,
        """
        (visit "first.md")
        (search-forward "Deep")
        (setq this-command 'eglot-rename) ; of which nobody is asked
        (eglot-rename "Deeper 🦊")
        (save-some-buffers t)
        (tell t)
        """,
    )
    assert read_notes(root) == {
        "hub.md": NOTES["hub.md"].replace("Deep 🦊 heading", "Deeper 🦊"),
        "first.md": NOTES["first.md"].replace("Deep 🦊 heading", "Deeper 🦊"),
        "second.md": NOTES["second.md"],
    }


def test_links_follow_a_renamed_file(root: Path) -> None:
    """Unsaved text of two buffers included."""
    tell(
        root,
        """
        (visit "first.md")
        (insert "🦊 [[hub]]\\n")
        (eglot--signal-textDocument/didChange) ; as it does by itself once nobody types
        (visit "hub.md")
        (insert "🦊 [[first]]\\n")
        (mdmem-rename-file "people/core.md")
        (visit "people/core.md")
        (save-some-buffers t)
        (tell t)
        """,
    )
    assert read_notes(root) == {
        "people/core.md": "🦊 [[first]]\n" + NOTES["hub.md"],
        "first.md": "🦊 [[core]]\n" + NOTES["first.md"].replace("[[hub", "[[core"),
        "second.md": NOTES["second.md"].replace("(hub.md)", "(people/core.md)"),
    }


def test_a_rename_that_emacs_cannot_make_is_refused(root: Path) -> None:
    told = tell(
        root,
        """
        (visit "first.md")
        (search-forward "hu")
        (tell (condition-case refused (eglot-rename "core") (error (error-message-string refused))))
        """,
    )
    assert "on the command line" in told
    assert read_notes(root) == NOTES
