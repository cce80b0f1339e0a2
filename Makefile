# The short way in; the build itself is CMake's (CMakeLists.txt, CMakePresets.json).
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600

.DEFAULT_GOAL := all
.PHONY: all python wheel demo test bench diagnose lint format fuzz soak install clean help

all: build/build.ninja ## build/sonde, build/libsonde.a, build/libsonde.so
	@cmake --build --preset release

# Ninja reconfigures by itself from here on.
build/build.ninja:
	@cmake --preset release

# Configured anew: an interpreter may have come meanwhile.
python: ## build/python: the Python package, for PYTHONPATH
	@tools/setup python
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target sonde python

wheel: python ## build/wheels: the package with the command, for pip install
	@tools/wheel

demo: ## install what is missing, build, profile a small training program
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@build/sonde demo

test: ## everything that must hold; ends with "N passed, N failed"
	@tools/test

bench: all ## what recording costs, beside its floor and its peers
	@tools/bench

diagnose: python ## score the diagnosis on workloads/ (DIAGNOSE="--repeats 5")
	@tools/diagnose --measure $(DIAGNOSE)

lint: ## clang-format, clang-tidy, cppcheck, layers
	@tools/lint

format: ## let clang-format have its way
	@git ls-files -co --exclude-standard -- '*.c' '*.h' '*.cpp' | xargs clang-format -i

fuzz: ## libFuzzer on every parser, FUZZ_SECONDS=600 in all
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz

soak: all ## the long tests
	@tools/soak

install: all ## install below PREFIX=/usr/local (DESTDIR= for packages)
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

clean: ## remove everything built
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r name text; do printf 'make %-8s %s\n' "$$name" "$$text"; done
