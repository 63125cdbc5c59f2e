# Equipoise. `make help` lists what can be made.

VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
PYTHON_FOUND = $(shell scripts/find_python.sh)
INSTALL_LOCKED := $(PYTHON_IN_VENV) -m pip install --quiet --disable-pip-version-check --require-hashes
PACKAGES := packages/equipoise packages/matching packages/studies
INSTALL_PACKAGES := $(PYTHON_IN_VENV) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps $(PACKAGES:%=--editable %)
# What decides whether the packages must be installed anew; their Python sources are used in place.
NATIVE_SOURCES := Cargo.toml Cargo.lock hatch_build.py $(PACKAGES:%=%/pyproject.toml) \
	$(shell find crates packages/*/crates -name target -prune -o -type f -print)

# What mypy checks.
TYPED := $(PACKAGES:%=%/src) $(PACKAGES:%=%/tests) tests conftest.py

# Rust that a build script compiles.
NOT_OF_CARGO := packages/studies/crates/probes/fork_server/main.rs

# The extension is built for the stable ABI, against no interpreter.
export PYO3_NO_PYTHON := 1
export PYO3_BUILD_EXTENSION_MODULE := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { sub(/:.*/, "", $$1); printf "make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(VENV)/package ## set everything up in .venv and run two real comparisons
	@scripts/demo.sh

.PHONY: test
test: $(VENV)/dev $(VENV)/package ## run lint and every test
	@scripts/debian_packages.sh
	@$(PYTHON_IN_VENV) scripts/run_tests.py

.PHONY: check
check: $(VENV)/dev $(VENV)/package ## lint, types and the fast tests, in under three minutes
	@$(PYTHON_IN_VENV) scripts/run_tests.py --quick

.PHONY: snapshots
snapshots: $(VENV)/dev $(VENV)/package ## renew the texts that tests hold as snapshots; read the diff
	@$(PYTHON_IN_VENV) -m pytest -q --snapshot-update $$(grep -rl syrupy tests packages/*/tests --include='test_*.py')

# One target each, so that `make --keep-going lint` shows all that is wrong.
.PHONY: lint lint-types lint-python lint-format-python lint-format-rust lint-rust
lint: lint-types lint-python lint-format-python lint-format-rust lint-rust ## check types, style and formatting

lint-types: $(VENV)/dev
	$(PYTHON_IN_VENV) -m mypy --strict $(TYPED)

lint-python: $(VENV)/dev
	$(PYTHON_IN_VENV) -m ruff check

lint-format-python: $(VENV)/dev
	$(PYTHON_IN_VENV) -m ruff format --check

lint-format-rust: | tools
	cargo fmt --all --check
	rustfmt --check --edition 2024 $(NOT_OF_CARGO)

lint-rust: | tools
	cargo clippy --workspace --all-targets --locked -- -D warnings

.PHONY: format
format: $(VENV)/dev ## format both languages
	$(PYTHON_IN_VENV) -m ruff check --fix-only
	$(PYTHON_IN_VENV) -m ruff format
	cargo fmt --all
	rustfmt --edition 2024 $(NOT_OF_CARGO)

.PHONY: build
build: $(VENV)/package ## build the native parts and install the packages in .venv, editable

# Its tests take none of the fixtures of others, for which the packages would be built for this host as well.
.PHONY: wheel
wheel: export EQUIPOISE_MANYLINUX := 2.28
wheel: export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
wheel: $(VENV)/dev $(VENV)/wheel ## build sdists and manylinux wheels into dist/, and test the wheels
	rm -f dist/equipoise*
	@set -e; for package in $(PACKAGES); do (cd $$package && $(CURDIR)/$(PYTHON_IN_VENV) -m hatchling build -d $(CURDIR)/dist); done
	$(PYTHON_IN_VENV) -m pytest -q --noconftest tests/packaging/test_manylinux.py

# Each prints its own figures; docs/evidence/validity.md holds what they printed once.
.PHONY: bench
bench: $(VENV)/dev $(VENV)/package ## run every benchmark (hours; wants an idle machine)
	@set -e; for folder in live gate launcher campaign ledger surroundings control genmatch workloads probes evidence database shape explaining stranger start; do \
		for script in benchmarks/$$folder/*.py; do \
			echo "== $$script"; PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) $$script; \
		done; \
	done
	@set -e; for part in equal more beside fresh speed; do echo "== benchmarks/functions: $$part"; $(PYTHON_IN_VENV) benchmarks/functions/run.py $$part; done
	@echo "== benchmarks/matching"; $(PYTHON_IN_VENV) -m benchmarks.matching
	@echo "== benchmarks/ranking"; $(PYTHON_IN_VENV) -m benchmarks.ranking.run
	@echo "== benchmarks/schedule"; $(PYTHON_IN_VENV) -m benchmarks.schedule.run
	@set -e; for part in joins.simulate joins.live suites.others site.build; do echo "== benchmarks: $$part"; PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) -m benchmarks.$$part; done
	@echo "== benchmarks/suites: planted"; PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) -m benchmarks.suites.planted --results target/planted.jsonl
	@echo "== benchmarks/validity"; $(PYTHON_IN_VENV) -m benchmarks.validity
	@set -e; for part in blocks intervals first_block covariates layouts slow_runs carry_over statements; do echo "== benchmarks/validity: $$part"; $(PYTHON_IN_VENV) -m benchmarks.validity.$$part; done
	@echo "== benchmarks/bisect"; $(PYTHON_IN_VENV) -m benchmarks.bisect
	@echo "== benchmarks/series"; $(PYTHON_IN_VENV) -m benchmarks.series
	@echo "== benchmarks/bisect: live"; PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) -m benchmarks.bisect.live
	@echo "== benchmarks/history"; $(PYTHON_IN_VENV) -m benchmarks.history
	@echo "== benchmarks/fleet"; $(PYTHON_IN_VENV) -m benchmarks.fleet
	@echo "== benchmarks/scale"; $(PYTHON_IN_VENV) -m benchmarks.scale
	@echo "== benchmarks/genoud"; $(PYTHON_IN_VENV) -m benchmarks.genoud.run
	@echo "== benchmarks/genoud: beside R"; $(PYTHON_IN_VENV) -m benchmarks.genoud.beside_r
	@set -e; for part in live size simulate curved; do echo "== benchmarks/observe: $$part"; $(PYTHON_IN_VENV) -m benchmarks.observe.$$part; done
	@echo "== benchmarks/cluster"; $(PYTHON_IN_VENV) -m benchmarks.cluster
	@set -e; for part in ratio alarms; do echo "== benchmarks/cluster: $$part"; PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) -m benchmarks.cluster.overhead $$part; done

.PHONY: test-suites
test-suites: $(VENV)/dev $(VENV)/package ## fetch all benchmark tools (minutes), and gate their suites
	@scripts/test_tools.sh
	@EQUIPOISE_TEST_TOOLS="$${EQUIPOISE_TEST_TOOLS:-$$HOME/.cache/equipoise-test-tools}" $(PYTHON_IN_VENV) -m pytest -q packages/equipoise/tests/suites

.PHONY: chaos
chaos: $(VENV)/dev $(VENV)/package ## kill, fill disks and starve: 300 faults, and what must hold (20 minutes)
	@$(PYTHON_IN_VENV) -m tests.chaos $(CHAOS)

.PHONY: fuzz
fuzz: $(VENV)/dev $(VENV)/package ## read 30,000 random hostile files, 10 minutes; finds go to tests/fuzz/corpus
	@$(PYTHON_IN_VENV) -m tests.fuzz $(FUZZ)

.PHONY: schema
schema: $(VENV)/package ## write the JSON Schemas of the documents into docs/
	@for kind in result:equipoise.model.result.ResultDocument pooled:equipoise.model.pooled.PooledCampaigns \
		observed:equipoise_matching.observation.result.ObservationResult series:equipoise.model.series.SeriesResult; do \
		$(PYTHON_IN_VENV) -c "import json, pydoc; from equipoise.report.json_document import schema; print(json.dumps(schema(pydoc.locate('$${kind#*:}')), indent=2))" > docs/$${kind%%:*}.schema.json || exit; \
	done

.PHONY: docs
docs: $(VENV)/dev $(VENV)/package ## build the documentation into site/
	@$(PYTHON_IN_VENV) scripts/commands_page.py > docs/reference/commands.md
	@$(PYTHON_IN_VENV) scripts/benchmark_tools_page.py > docs/reference/benchmark-tools.md
	$(PYTHON_IN_VENV) -m mkdocs build --strict

.PHONY: screenshots
screenshots: $(VENV)/dev $(VENV)/package ## make the pictures of pages in docs/images (minutes the first time)
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) scripts/screenshots.py

.PHONY: lock
lock: | tools ## resolve the locks of both languages anew
	cargo update
	$(PYTHON_FOUND) -m venv target/lock
	target/lock/bin/python -m pip install --quiet uv
	scripts/lock.sh target/lock/bin/uv

.PHONY: clean
clean: ## remove everything that was made
	rm -rf $(VENV) target dist build demo site packages/*/src/*/_bin packages/*/src/*/*.so
	find packages tests scripts -name __pycache__ -prune -exec rm -rf {} +

.PHONY: tools
tools:
	@scripts/check_tools.sh

$(VENV)/base: requirements.lock | tools
	@test -x $(PYTHON_IN_VENV) || $(PYTHON_FOUND) -m venv $(VENV)
	$(INSTALL_LOCKED) -r requirements.lock
	@touch $@

# After base, so that the two never install at the same time; its lock agrees with that of base.
$(VENV)/dev: requirements-dev.lock $(VENV)/base
	$(INSTALL_LOCKED) -r requirements-dev.lock
	@touch $@

# What links for older systems, checks the tag of the wheel, and installs it.
$(VENV)/wheel: requirements-wheel.lock $(VENV)/base
	$(INSTALL_LOCKED) -r requirements-wheel.lock
	@touch $@

$(VENV)/package: $(NATIVE_SOURCES) $(VENV)/base
	$(INSTALL_PACKAGES)
	@touch $@
