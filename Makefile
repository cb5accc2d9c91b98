# `make demo` and `make test` each work as the first command on a fresh clone.
# Everything they set up lives in .venv; nothing is left outside the checkout.

PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_CACHE_DIR = 1

# Run a command, its output in a file; where it fails, show the end of that and say what to do.
quietly = @$(1) > .venv/log 2>&1 || { tail -n 5 .venv/log; echo "$(2)"; exit 1; } >&2
FETCHING = make: packages could not be installed; connect to the network and run make again (.venv/log has it all)

.DEFAULT_GOAL := test
.PHONY: demo docs editors meaning web test test-all lint format bench clean

.venv/python:
	@command -v $(PYTHON) >/dev/null || { echo "make: there is no $(PYTHON); install Python 3.11 or newer, or set PYTHON=/path/to/python3"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: mdmem needs Python 3.11 or newer, and $(PYTHON) is older; set PYTHON=python3.11"; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) has no venv; on Debian and its like: apt-get install python3-venv"; exit 1; } >&2
	@$(PYTHON) -m venv .venv
	@touch $@

# The package and the server for agents: 140 MB at most.
.venv/package: pyproject.toml .venv/python
	@echo "Installing mdmem and what it needs into .venv" >&2
	$(call quietly,.venv/bin/python -m pip install --quiet --editable '.[mcp]',$(FETCHING))
	@touch $@

# What the tests need as well: 500 MB more.
.venv/ready: .venv/package
	@echo "Installing what the tests need into .venv; this takes a minute or two"
	$(call quietly,.venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1',$(FETCHING))
	$(call quietly,.venv/bin/python -m pip install --quiet --editable . --group dev,$(FETCHING))
	@touch $@

demo: .venv/package
	@PATH="$(CURDIR)/.venv/bin:$$PATH" sh bench/demo.sh

# Neovim, Emacs, Helix and VS Code, which tests/editors.sh installs into .venv; not part of `test`.
# EDITORS=terminal leaves VS Code out, and with it npm and a browser.
editors: .venv/ready
	sh tests/editors.sh $(EDITORS)
	MDMEM_EDITORS=1 .venv/bin/pytest tests/editors $(if $(EDITORS),--ignore tests/editors/test_vscode.py)

# The page in a Chromium, which tests/web_page.sh installs with what drives it; not part of `test`.
web: .venv/ready
	sh tests/web_page.sh
	MDMEM_WEB=1 .venv/bin/pytest tests/web_page

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy mdmem
	.venv/bin/lint-imports

# ROOM=index runs the tests of one room.
test: lint
	.venv/bin/pytest -n 2 --dist worksteal $(if $(ROOM),tests/$(ROOM))
	XDG_STATE_HOME="$(CURDIR)/.venv/state" XDG_CACHE_HOME="$(CURDIR)/.venv/cache" .venv/bin/mdmem --vault memories check

# Kills, faults, races, thousands of files and examples as well; a change of the code draws other examples.
test-all: lint
	.venv/bin/mypy
	.venv/bin/pytest --all -n 2 --dist worksteal

format: .venv/ready
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# The leg of a search that knows other words, with its model: 280 MB more in .venv; not part of `test`.
# Its tests run without a network where the system lets them.
.venv/meaning: .venv/ready
	@echo "Installing what a search by meaning needs into .venv"
	$(call quietly,.venv/bin/python -m pip install --quiet --editable '.[semantic]' 'fastembed>=0.9' tokenizers,$(FETCHING))
	@touch $@

MEANING = .venv/bin/pytest --all tests/index/embedder tests/index/test_vectors.py tests/index/test_meaning.py tests/facade/test_memini.py
meaning: .venv/meaning
	if unshare -rn ip link set lo up 2>/dev/null; then unshare -rn sh -c 'ip link set lo up; $(MEANING)'; else $(MEANING); fi

docs/config.schema.json: mdmem/vault/config.py .venv/ready
	.venv/bin/python -c 'import json, mdmem.vault.config as c; print(json.dumps(c.schema(), indent=2))' > $@

# The site, in .venv/site: its reference pages are made from the code first.
docs: .venv/ready docs/config.schema.json
	.venv/bin/python bench/pages.py
	.venv/bin/python bench/picture.py
	.venv/bin/python bench/rooms.py
	.venv/bin/python bench/menu.py
	.venv/bin/zensical build --strict --clean
	.venv/bin/python bench/menu.py .venv/site

bench: .venv/ready
	.venv/bin/python bench/run.py

clean:
	rm -rf .venv .cache dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
