# Everything runs in .venv, which is made once and refreshed when what the package is built from changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# One worker more than cores: tests of the network mostly wait.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")

BENCHMARKS ?= pppca_scale pppca_table3 he_sums dpdpca_scale

.PHONY: help demo test again check bench paths mutants clean

help:
	@echo "make demo    three hospitals, one private PCA (writes atoll-demo/)"
	@echo "make test    the test suite"
	@echo "make check   style, types and layers"
	@echo "make bench   speed and bytes, as ratios"
	@echo "make paths   the tests of SF-PCA on each vector path of this machine"
	@echo "make mutants does a test notice each dangerous edit? (slow; MUTANTS='masks --jobs 4' for some)"

demo: $(VENV)/.demo
	$(BIN)/atoll demo

# The Go core's own tests need Go; where the library was built with a packaged Go, they are left out.
test: $(VENV)/.test
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory -C go check; \
	else echo "no go on this machine: the Go core's own tests are left out"; fi
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal || { [ $$? -eq 1 ] && $(MAKE) --no-print-directory again; }

# Tests kill nodes, cut links and race clocks, beside each other: one that failed must pass alone. Both runs
# show its name, and the output of the first says why.
again: $(VENV)/.test
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none -n 0 -rA --tb no

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	@for name in $(BENCHMARKS); do echo "== $$name" && $(BIN)/python -m benchmarks.$$name || exit 1; done

# Not part of `make test`, which takes the fastest one. With a path forced, the tests check that it is taken.
paths: $(VENV)/.test
	@$(MAKE) --no-print-directory -C go paths
	@for path in $$($(BIN)/python -c "from atoll.crypto.products import vector_paths; print(*vector_paths())"); do \
		echo "== $$path" && ATOLL_VECTOR=$$path $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q \
			tests/crypto tests/secret_matrices tests/protocols/pca/sfpca tests/estimators/test_sfpca.py || exit 1; \
	done

# Not part of `make test`: every mutant runs tests of its own. tests/mutants/README.md says how to add one.
mutants: $(VENV)/.test
	$(BIN)/python -m tests.mutants $(MUTANTS)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What the package is built from, beside Python files, which are used where they lie.
BUILT_FROM := pyproject.toml hatch_build.py go/go.mod go/go.sum \
	$(foreach kind,go s c h,$(wildcard go/*.$(kind) go/*/*.$(kind) go/*/*/*.$(kind)))

# One stamp for each set of packages: `make demo` installs only what the demo needs. Nothing is compiled
# beforehand, which would take longer than all the rest.
$(VENV)/.demo: $(BUILT_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e .
	@touch $@

$(VENV)/.test: $(BUILT_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[test]"
	@touch $@

$(VENV)/.check: $(BUILT_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[check]"
	@touch $@
