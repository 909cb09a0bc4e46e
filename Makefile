# Two commands do all the set-up: `make demo` and `make test`.
# Both need only python3 (3.11 or newer), make and a package index.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint types imports check-tests docs check-docs fuzz kills mutate bench keep-results paper release-check test-lowest clean help

help:
	@echo "make demo    install, then classify digits with an indefinite similarity"
	@echo "make test    install, then run every check: ruff, types, import direction, tests, the site"
	@echo "make docs    install, then build the site into docs/_build/html"
	@echo "make fuzz    give 10,000 damaged files to the command; CASES=, SEED=, SECONDS= of a guided search"
	@echo "make kills   kill fits and predictions 100 times each, and compare what the next run makes"
	@echo "make mutate  change one thing in the mathematics at a time, and count what the tests notice; COUNT=, SEED="
	@echo "make bench   measure; ratios to a bare reference of the same run"
	@echo "make paper   reproduce the paper: every table and figure; one by TABLE=1, FIGURE=2 or NAME=beyond"
	@echo "make release-check   build sdist and wheel, then try the wheel in an empty environment"
	@echo "make test-lowest     run the tests with the lowest supported version of every dependency"
	@echo "make clean   remove what the other commands made"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "krein needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)
	@$(BIN)/krein demo

test: lint types imports check-tests check-docs

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

check-tests: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# warnings are errors; an example of the gallery runs again where its script has changed
SITE = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html

docs: $(STAMP)
	$(SITE) docs docs/_build/html
	@echo "the site: docs/_build/html/index.html"

# the same, and every example runs, for what it imports may have changed
check-docs: $(STAMP)
	$(SITE) -D sphinx_gallery_conf.run_stale_examples=True docs docs/_build/html

# seeded damage, counted by outcome; then, where Atheris is installed, a search guided by coverage
CASES ?= 10000
SEED ?= 0
SECONDS ?= 1800
fuzz: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tests.attack.fuzz --cases $(CASES) --seed $(SEED)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tests.attack.guided --seconds $(SECONDS)

kills: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tests.attack.kills --kills 100

# resumes where it stopped; AGAIN=--again tries survivors once more, after new tests
COUNT ?= 160
mutate: $(STAMP)
	$(BIN)/python -m tests.mutations --count $(COUNT) --seed $(SEED) $(AGAIN)

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

keep-results: $(STAMP)
	$(BIN)/python docs/keep_results.py

# all of them, or one: make paper TABLE=1, FIGURE=2, NAME=tried; NAME=results writes RESULTS.md alone
paper: $(STAMP)
	$(BIN)/python -m paper $(addprefix table,$(TABLE)) $(addprefix figure,$(FIGURE)) $(NAME)

# What a user would install: the wheel is built from the sdist, and tried without the source tree.
# The demo needs the wheel, its dependencies and the extra for its report; the tests also need pytest,
# hypothesis and an oracle.
RELEASE := build/release
RELEASE_TESTS ?= tests/test_package.py tests/core tests/landmarks

release-check:
	rm -rf $(RELEASE) dist
	$(PYTHON) -m venv $(RELEASE)/tools
	$(RELEASE)/tools/bin/python -m pip install --quiet build twine
	$(RELEASE)/tools/bin/python -m build --outdir dist .
	$(RELEASE)/tools/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(RELEASE)/alone
	$(RELEASE)/alone/bin/python -m pip install --quiet "$$(ls dist/*.whl)[report]"
	$(RELEASE)/alone/bin/python -m pip check
	cd $(RELEASE) && PYTHONPATH= alone/bin/krein demo
	$(RELEASE)/alone/bin/python -m pip install --quiet pytest hypothesis crepes
	PYTHONPATH= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
		$(RELEASE)/alone/bin/python -m pytest $(RELEASE_TESTS)

# pyproject.toml states the lowest versions; tests/lowest.py turns them into constraints. The tools
# that check krein are the newest ones. It takes the lowest Python as well: PYTHON=python3.11
LOWEST := build/lowest
LOWEST_TESTS ?= tests --ignore=tests/docs --ignore=tests/paper --ignore=tests/test_examples.py

test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet -c $(LOWEST)/constraints.txt -e ".[all]" \
		pytest pytest-xdist hypothesis biopython crepes dnaio dtaidistance
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
		$(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(LOWEST_TESTS)

clean:
	rm -rf docs/_build docs/auto_examples docs/generated docs/reference/generated
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
