# Two commands to begin with: `make demo` and `make test`. Both need only Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
LOWEST := .venv-lowest
BASE   := .venv-base
PIP    := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Two processes side by side, one thread each. Each has one half of the tests, in order, as those of a file share what
# they have set up; who is done first takes over half of what is left to the other.
PYTEST_ARGS ?= --numprocesses 2 --dist worksteal

.PHONY: setup demo test test-base test-lowest coverage lint format docs dist reproduce clean

# Stamps say what has been installed, so that a second run installs nothing.
$(VENV)/.setup: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "engram needs Python 3.11 or newer; try make PYTHON=python3.11")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[paper,plot]'
	@touch $@

$(VENV)/.test: $(VENV)/.setup
	$(PIP) --editable '.[test,lint]'
	@touch $@

$(VENV)/.coverage: $(VENV)/.test
	$(PIP) --editable '.[coverage]'
	@touch $@

$(VENV)/.docs: $(VENV)/.setup
	$(PIP) --editable '.[docs]'
	@touch $@

setup: $(VENV)/.setup

demo: setup
	$(VENV)/bin/engram demo

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest $(PYTEST_ARGS)

# The product's tests with nothing but what it declares: no torch, scipy or scikit-learn. What needs more is skipped.
test-base:
	test -x $(BASE)/bin/python || $(PYTHON) -m venv $(BASE)
	$(BASE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable . pytest pytest-timeout pytest-xdist hypothesis
	OMP_NUM_THREADS=1 $(BASE)/bin/python -m pytest $(PYTEST_ARGS)

# The same tests with the lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check packaging
	$(LOWEST)/bin/python .ci/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(LOWEST)/constraints.txt --editable '.[test,heic]'
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest $(PYTEST_ARGS)

# Which branches the tests take, those of the processes they start included. Fails below the bar in pyproject.toml.
coverage: $(VENV)/.coverage
	rm -rf build/coverage && mkdir -p build/coverage
	OMP_NUM_THREADS=1 $(VENV)/bin/coverage run -m pytest $(PYTEST_ARGS)
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report

# The site, in site/. A warning, such as a link that leads nowhere, is an error.
docs: $(VENV)/.docs
	$(VENV)/bin/mkdocs build --strict

# Source distribution and wheel, in dist/; the wheel is made from the source distribution.
dist: $(VENV)/.setup
	$(PIP) build twine
	rm -rf dist
	$(VENV)/bin/python -m build
	$(VENV)/bin/twine check --strict dist/*

# Every row, from pictures to results/ and from there to the ledger: needs the data sets, the backbones' weights and
# days of CPU or hours of GPU. ONLY names results files: make reproduce DATA=data WEIGHTS=weights ONLY='cub200-*'
# Without it there follow what is measured with the machine to itself: logistic regression, and what a class costs.
reproduce: setup
	@test -n "$(DATA)" -a -n "$(WEIGHTS)" || { echo "say where they are: make reproduce DATA=data WEIGHTS=weights"; exit 2; }
	$(VENV)/bin/python benchmarks/reproduce.py --data '$(DATA)' --weights '$(WEIGHTS)' --only '$(or $(ONLY),*)' $(ARGS)
	@test -n "$(ONLY)" || for dataset in cifar100 cub200; do \
		$(VENV)/bin/python benchmarks/logistic.py $$dataset --data '$(DATA)' --backbone resnet50 \
			--weights '$(WEIGHTS)/resnet50_msra.safetensors' --cache build/reproduce/cache \
			--json results/logistic/$$dataset.json && \
		$(VENV)/bin/python benchmarks/increments.py $$dataset \
			--features build/reproduce/features/$$dataset-resnet50.safetensors \
			--json results/increments/$$dataset.json || exit 1; \
	done
	$(VENV)/bin/python benchmarks/reproduction.py

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.test
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) $(BASE) $(LOWEST) build dist site
