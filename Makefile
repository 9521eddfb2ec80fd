# Everything a developer runs. Needs Python 3.11 or newer, make and a package index; all else goes into .venv.
# Each target sets up what it needs; a stamp file makes that happen once per lock.

PYTHON ?= $(shell command -v python3.11 || echo python3)
UV_VERSION := 0.13.7
JOBS ?= auto
EXAMPLES ?= 5000
SEED ?= 0
COUNT ?= 100
SCALE ?= 4
CYCLONEDX_VERSION := 7.5.0
ZENSICAL_VERSION := 0.0.73

BIN := .venv/bin
RUN_STAMP := .venv/.set-up-run
STAMP := .venv/.set-up
COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup lock test test-slow conformance check format run bench mutate fuzz attack soak losses rules matrix docs docs-lock build sbom

help:
	@echo "make test       the fast tests"
	@echo "make test-slow  the others: long tables in full, real programs, long runs"
	@echo "make conformance  the official conformance suite of MCP, from npm"
	@echo "make check      ruff check, ruff format --check, pyright, commit subjects"
	@echo "make run        the gateway on 127.0.0.1:8741; the simulator answers where no key is set"
	@echo "make bench      speed; make mutate: mutation test (SEED, COUNT)"
	@echo "make fuzz       the laws with EXAMPLES generated values each, then a million mutated documents"
	@echo "make attack     attacks on availability: what one client's requests do to the others (SCALE)"
	@echo "make soak       many mixed requests with faults, and how memory grows (REQUESTS)"
	@echo "make losses     regenerate docs/reference/losses.md; make rules: docs/reference/rules.md; make matrix: docs/reference/matrix.md"
	@echo "make build      sdist and wheel in dist; make sbom: the packages that running needs, as CycloneDX"
	@echo "make docs       build the documentation site in build/docs/html and check its links"
	@echo "make lock       resolve requirements.lock and requirements-dev.lock anew; make format: apply ruff"

setup: $(STAMP)

# What running needs. `make run` installs no more than this.
$(RUN_STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# What developing and testing need as well.
$(STAMP): $(RUN_STAMP) requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

# A lock names versions and hashes, never an index: whoever installs chooses where packages come from.
# Both hold the build backend, so that set-up fetches nothing unpinned; the second also has a Node for pyright.
lock:
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	printf 'hatchling\neditables\npyright[nodejs]\n' | $(COMPILE) --upgrade --group dev pyproject.toml - -o requirements-dev.lock
	printf 'hatchling\neditables\n' | $(COMPILE) --upgrade --constraint requirements-dev.lock pyproject.toml - -o requirements.lock

test: $(STAMP)
	$(PYTEST) -n $(JOBS) -m "not slow"

test-slow: $(STAMP)
	$(PYTEST) -n $(JOBS) -m slow

# Every required scenario of both revisions of MCP, against our client and our server (with tests/mcp_fixtures).
conformance: $(STAMP)
	$(PYTEST) -n 0 -rs tests/end_to_end/mcp -k conformance

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python tests/architecture/commit_subjects.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

run: $(RUN_STAMP)
	$(BIN)/dragoman serve

bench: $(STAMP)
	$(BIN)/python -m benchmarks --rounds 20
	$(BIN)/python -m benchmarks.gateway
	$(BIN)/python -m benchmarks.text_calls

mutate: $(STAMP)
	$(BIN)/python tests/mutation/mutate.py --seed $(SEED) --count $(COUNT)

# The laws with many generated values, then a million mutated documents and streams: about ten minutes on two cores.
fuzz: $(STAMP)
	DRAGOMAN_EXAMPLES=$(EXAMPLES) $(PYTEST) -n $(JOBS) $(wildcard tests/laws) tests/core tests/wire
	$(BIN)/python tests/fuzz/fuzz.py --seed $(SEED) --inputs $(or $(INPUTS),1000000) --jobs 2

# Attacks on availability over loopback. A bar that is missed is an error.
attack: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m attack.run --scale $(SCALE)

# A hundred thousand requests: about ten minutes.
soak: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m attack.soak --requests $(or $(REQUESTS),100000) --seed $(SEED)

losses: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m laws.losses docs/reference/losses.md

rules: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m simulator.rule_list docs/reference/rules.md

matrix: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m end_to_end.table docs/reference/matrix.md

# No isolation: the build backend is the one of the lock.
build: $(RUN_STAMP)
	rm -rf dist
	$(BIN)/hatchling build -d dist -t sdist -t wheel

# What the wheel and its five dependencies install, from an environment without pip; the tool has one of its own.
sbom: build
	test -x .venv-sbom/bin/python || $(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==$(CYCLONEDX_VERSION)
	$(PYTHON) -m venv --clear --without-pip build/sbom
	sed '/--hash/d; s/ *\\$$//' requirements.lock > build/versions.txt
	$(BIN)/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check \
		--constraint build/versions.txt dist/dragoman-*.whl
	sed "s/^dynamic = .*/version = \"$$($(BIN)/hatchling version)\"/" pyproject.toml > build/pyproject.toml
	.venv-sbom/bin/cyclonedx-py environment --pyproject build/pyproject.toml --mc-type application --output-reproducible \
		--validate --output-file dist/dragoman.cdx.json build/sbom/bin/python

# The site generator has an environment and a lock of its own: no other target installs it.
DOCS_BIN := .venv-docs/bin
DOCS_STAMP := .venv-docs/.set-up

$(DOCS_STAMP): requirements-docs.lock
	test -x $(DOCS_BIN)/python || $(PYTHON) -m venv .venv-docs
	$(DOCS_BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

# Stops at a broken link or anchor, and at a page that loads something from another host.
docs: $(DOCS_STAMP)
	$(DOCS_BIN)/python docs/site.py stage
	$(DOCS_BIN)/zensical build --strict --clean
	$(DOCS_BIN)/python docs/site.py check
	@echo "Read it: $(DOCS_BIN)/python -m http.server --directory build/docs/html 8000"

docs-lock:
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	$(DOCS_BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	printf 'zensical==$(ZENSICAL_VERSION)\n' | $(DOCS_BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --quiet - -o requirements-docs.lock
