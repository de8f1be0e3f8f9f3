# emq-native: what a developer types. Nothing here needs root.
#   PYTHON    the interpreter that makes the venv (3.10 or newer)
#   VENV      where the venv goes
#   EXECUTOR  native (the module, wire 6) or scripted (Lua, wire 4), for the demo
#   ARGS      further arguments for the command that runs (pytest, emq-native demo)

PYTHON   ?= python3
VENV     ?= .venv
EXECUTOR ?= native
ARGS     ?=

BIN   := $(VENV)/bin
# An editable install needs to be repeated only when what is compiled or declared has changed.
BUILT := $(wildcard pyproject.toml setup.py MANIFEST.in python/emq_native/_build.py module/Makefile module/src/*.[ch])
C     := $(wildcard module/src/*.[ch] module/tests/*.[ch])

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test bench bench-peers docs storm containers soak lint lint-python lint-c format clean distclean need

help:
	@echo 'make demo                      build all, start a Valkey with the module and push real work through it'
	@echo 'make demo EXECUTOR=scripted    the same by Lua scripts, on a server without the module'
	@echo 'make test                      C unit tests, fuzz replay and every pytest that needs no container engine'
	@echo 'make test ARGS="-k claim"      the same, with arguments for pytest'
	@echo 'make docs                      the reference of the commands, then the documentation as a site in build/site'
	@echo 'make bench                     what all of it costs, beside scripts, plain commands and lists: bench/README.md; ARGS=--quick'
	@echo 'make bench-peers               the same jobs through other queues, which it fetches from PyPI and npm into build/peers'
	@echo 'make storm                     10,000 jobs while workers and the server are killed all the time, on both executors'
	@echo 'make containers                tests of the images, and of the ways to install (need a container engine with compose)'
	@echo 'make soak SECONDS=600          random walks of both executors beside the model; SEED=N repeats one'
	@echo 'make lint                      ruff, mypy, clang-format, clang-tidy'
	@echo 'make format                    let ruff and clang-format rewrite the sources'
	@echo 'make clean                     remove what was built; distclean removes $(VENV) too'
	@echo 'make -C module help            the module alone: needs a C compiler and nothing else'

demo: $(VENV)/.server
	$(BIN)/emq-native demo --executor $(EXECUTOR) $(ARGS)

test: $(VENV)/.dev
	$(MAKE) -C module unit fuzz
	$(BIN)/python -m pytest tests --ignore=tests/containers --ignore=tests/newcomer $(ARGS)

docs: $(VENV)/.dev
	$(BIN)/python docs/commands.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(VENV)/.dev
	$(BIN)/python -m bench.peers --install
	$(BIN)/python -m bench.peers $(ARGS)

storm: $(VENV)/.dev
	$(BIN)/python -m tests.storm.storm --executor native $(ARGS)
	$(BIN)/python -m tests.storm.storm --executor scripted $(ARGS)

containers: $(VENV)/.dev
	$(BIN)/python -m pytest tests/containers tests/newcomer $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/python -m tests.model.soak $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

lint: lint-python lint-c

lint-python: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-c:
	@for tool in clang-format clang-tidy; do \
	    command -v $$tool >/dev/null || { echo "make lint needs $$tool (Debian: apt-get install $$tool)"; exit 1; }; done
	clang-format --dry-run --Werror $(C)
	$(MAKE) -C module tidy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(MAKE) -C module format

clean:
	-$(MAKE) -C module clean
	rm -rf build dist python/*.egg-info

distclean: clean
	rm -rf $(VENV)

# The two installs: what runs the demo, and what develops and tests. Each leaves a stamp, so a second run starts at once.
$(VENV)/.server: $(BIN)/python $(BUILT) | need
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[server]'
	@touch $@

$(VENV)/.dev: $(BIN)/python $(BUILT) | need
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[server,dev,docs]'
	@touch $@ $(VENV)/.server

$(BIN)/python: | need
	@echo 'setting up $(VENV) (a minute or so)'
	$(PYTHON) -m venv $(VENV)

# Say what is missing, all at once, before anything is downloaded.
need:
	@ok=1; lacks() { ok=0; printf 'missing: %s\n' "$$1"; printf '   Debian, Ubuntu: apt-get install %s\n   Fedora: dnf install %s\n' "$$2" "$$3"; }; \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	    lacks 'Python 3.10 or newer as $(PYTHON) (or say make PYTHON=...)' 'python3 python3-venv python3-dev' 'python3 python3-devel'; \
	else \
	    $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || lacks 'venv for $(PYTHON)' python3-venv python3; \
	    $(PYTHON) -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_paths()["include"], "Python.h"))' 2>/dev/null \
	        || lacks 'C headers of $(PYTHON)' python3-dev python3-devel; \
	fi; \
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $(CC) -x c -fsyntax-only - 2>/dev/null \
	    || lacks 'a C compiler as $(CC) (or say make CC=...)' 'gcc libc6-dev' gcc; \
	[ $$ok = 1 ]
