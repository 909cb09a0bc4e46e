# Two commands do all the set-up: `make demo` and `make test`.
# Both need only python3 (3.11 or newer), make and a package index.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO := .venv/.demo-installed

.PHONY: demo test test-all test-rest lint types imports check-tests check-slow docs check-docs pages fuzz kills mutate bench keep-results paper release-check test-lowest test-newest clean help

help:
	@echo "make demo    install what it needs, then classify digits with an indefinite similarity"
	@echo "make test    install, then check a change: ruff, types, import direction, all but the slow tests"
	@echo "make test-all  the same, then the slow tests (kills, damaged files, a browser, the pages) and the site"
	@echo "make docs    install, then build the site into docs/_build/html"
	@echo "make pages   run the code on the pages, and write what it prints into them"
	@echo "make fuzz    forge models, run the command on 10,000 damaged files, then search; CASES=, SEED=, SECONDS="
	@echo "make kills   kill fits and predictions 100 times each, and check the results of the next run"
	@echo "make mutate  mutation testing of one module with cosmic-ray; MODULE=core/smss.py TESTS=tests/core/test_smss.py"
	@echo "make bench   run the benchmarks: ratios to a bare reference in the same run"
	@echo "make paper   reproduce every table and figure of the paper, or one: TABLE=1, FIGURE=2 or NAME=beyond"
	@echo "make keep-results    copy the results of the benchmarks to docs/results"
	@echo "make release-check   build sdist and wheel, then test the wheel in an empty environment"
	@echo "make test-lowest     run the tests with the lowest supported version of every dependency"
	@echo "make test-newest     run the tests with the newest version of every dependency; PYTHON=python3.13"
	@echo "make clean   remove everything that the other commands created"

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "krein needs Python 3.11 or newer; choose one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

# all tools for development; with them, the demo needs nothing more
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e ".[dev]"
	@touch $@ $(DEMO)

# only what the demo needs
$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e ".[report]"
	@touch $@

demo: $(DEMO)
	@$(BIN)/krein demo

test: lint imports
	$(MAKE) --jobs=2 check-tests types

test-all: test test-rest

# build the site while the slow tests run, because some of them only wait for other processes
test-rest: $(STAMP)
	$(MAKE) --jobs=2 check-slow check-docs

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# the tests start Python hundreds of times: keep its compiled modules, even if the shell says otherwise
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST = $(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal

check-tests: $(STAMP)
	$(PYTEST) -m "not slow"

check-slow: $(STAMP)
	$(PYTEST) -m slow

# warnings are errors; a gallery example runs again only if its script has changed
SITE = $(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html

docs: $(STAMP)
	$(SITE) docs docs/_build/html
	@echo "the site: docs/_build/html/index.html"

# the same, but every example runs, because krein itself may have changed
check-docs: $(STAMP)
	$(SITE) -D sphinx_gallery_conf.run_stale_examples=True docs docs/_build/html

pages: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m tests.docs.pages

# forged models and seeded damage, counted by outcome; then a coverage-guided search, if Atheris is installed
CASES ?= 10000
SEED ?= 0
SECONDS ?= 1800
fuzz: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m tests.attack.forger
	$(ONE_THREAD) $(BIN)/python -m tests.attack.fuzz --cases $(CASES) --seed $(SEED)
	$(ONE_THREAD) $(BIN)/python -m tests.attack.guided --seconds $(SECONDS)

kills: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m tests.attack.kills --kills 100

# cosmic-ray changes one thing at a time in MODULE and runs TESTS; a session that stopped resumes
MODULE ?= core/smss.py
TESTS ?= tests/core/test_smss.py
mutate: $(STAMP)
	@mkdir -p build/mutations
	@printf '[cosmic-ray]\nmodule-path = "src/krein/$(MODULE)"\ntimeout = 120.0\nexcluded-modules = []\ntest-command = "$(BIN)/python -m pytest -x -q $(TESTS)"\n[cosmic-ray.distributor]\nname = "local"\n' \
		> build/mutations/$(subst /,-,$(MODULE)).toml
	test -f build/mutations/$(subst /,-,$(MODULE)).sqlite || $(BIN)/cosmic-ray init \
		build/mutations/$(subst /,-,$(MODULE)).toml build/mutations/$(subst /,-,$(MODULE)).sqlite
	$(BIN)/cosmic-ray exec build/mutations/$(subst /,-,$(MODULE)).toml build/mutations/$(subst /,-,$(MODULE)).sqlite
	$(BIN)/cr-report build/mutations/$(subst /,-,$(MODULE)).sqlite | tail -n 3

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

keep-results: $(STAMP)
	$(BIN)/python docs/keep_results.py

# all of them, or one: make paper TABLE=1, FIGURE=2, NAME=tried; NAME=results only writes RESULTS.md
paper: $(STAMP)
	$(BIN)/python -m paper $(addprefix table,$(TABLE)) $(addprefix figure,$(FIGURE)) $(NAME)

# Tests what a user would install: the wheel is built from the sdist and tested without the source tree.
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
	PYTHONPATH= $(ONE_THREAD) \
		$(RELEASE)/alone/bin/python -m pytest $(RELEASE_TESTS)

# pyproject.toml states the lowest versions; tests/lowest.py turns them into constraints. Test tools
# are installed in their newest versions. To use the lowest Python as well, set PYTHON=python3.11
LOWEST := build/lowest
LOWEST_TESTS ?= tests --ignore=tests/docs --ignore=tests/paper --ignore=tests/test_examples.py
ORACLES := pytest pytest-xdist hypothesis biopython crepes dnaio dtaidistance

test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet -c $(LOWEST)/constraints.txt -e ".[all]" $(ORACLES)
	$(ONE_THREAD) \
		$(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(LOWEST_TESTS)

# what pip installs today, without constraints.txt; set PYTHON to the newest Python at hand
NEWEST := build/newest

test-newest:
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --upgrade -e ".[all]" $(ORACLES)
	$(ONE_THREAD) \
		$(NEWEST)/bin/python -m pytest -n auto --dist worksteal $(LOWEST_TESTS)

clean:
	rm -rf docs/_build docs/auto_examples docs/generated docs/reference/generated
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
