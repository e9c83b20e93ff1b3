# Two commands do everything: `make demo` and `make test`. Both need only Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
PIP    := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Two processes side by side, one thread each; a file's tests stay together, as they share what they have set up.
PYTEST_ARGS ?= --numprocesses 2 --dist loadfile

.PHONY: setup demo test lint format clean

# Stamps say what has been installed, so that a second run installs nothing.
$(VENV)/.setup: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "engram needs Python 3.11 or newer; try make PYTHON=python3.11")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[plot]'
	@touch $@

$(VENV)/.test: $(VENV)/.setup
	$(PIP) --editable '.[test,lint]'
	@touch $@

setup: $(VENV)/.setup

demo: setup
	$(VENV)/bin/engram demo

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.test
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) build dist
