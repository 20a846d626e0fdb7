# Every target is a line of a README or of the CI; run `make` to see them.

CARGO ?= cargo
# The same selection everywhere, so that cargo builds each dependency once.
ALL := --workspace --locked --features sandbox
# How many of the tests against real Kafka run at a time; each has clusters of its own.
KAFKA_TEST_THREADS ?= 1
# The tests against real Kafka that are run on the native data plane too.
ON_BOTH_PLANES := copy:: log_events:: members:: positions:: brokers:: kills:: oversize:: zombies::
# How many seeds `make torture` runs, from which on, or which one; for how many seconds each is struck.
SEEDS ?=
FIRST ?=
SEED ?=
SECONDS ?=
# Passed on to the programs: make kafka-up ARGS='--brokers 3'
ARGS ?=

.DEFAULT_GOAL := help
# One target of this file at a time, whatever -j says: all of them are cargo, which uses the cores by itself.
.NOTPARALLEL:
.PHONY: help demo test faults torture soak fuzz bench bench-quick check fmt clippy doc licences shell kafka-up setup-build setup-test

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-11s %s\n", $$1, $$2 }'

demo: setup-build ## Build mirror and run its sandbox: clusters, routes and records in one process
	$(CARGO) run --release --locked --features sandbox -- sandbox $(ARGS)

test: setup-test fmt clippy ## Set up what is missing, then check the style and run all tests, those against real Kafka too
	$(CARGO) test $(ALL) --lib --bins --test fast --test threads --test fuzz
	$(CARGO) test $(ALL) --doc
	$(CARGO) test $(ALL) --test clusters --test kafka_up --test kafka -- --test-threads=$(KAFKA_TEST_THREADS)
	MIRROR_TEST_DATA_PLANE=native $(CARGO) test $(ALL) --test kafka -- --test-threads=$(KAFKA_TEST_THREADS) $(ON_BOTH_PLANES)
	$(CARGO) test $(ALL) --test faults
	MIRROR_TEST_DATA_PLANE=native $(CARGO) test $(ALL) --test faults
	$(CARGO) test $(ALL) --test torture

faults: setup-build ## Every error code of a broker at every stage, on embedded clusters: what is lost or repeated
	$(CARGO) test $(ALL) --test faults

torture: setup-test ## Faults from seeds on real Kafka: make torture SEEDS=100; one again: make torture SEED=17
	$(CARGO) test $(ALL) --test torture -- $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

soak: setup-test ## An hour of faults, and what mirror takes of the machine meanwhile: target/torture/soak.svg
	$(CARGO) test $(ALL) --test torture -- --soak $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS))

fuzz: setup-build ## Fuzz the reading of the file for half an hour: make fuzz ARGS='--seed 2 --keep tests/corpus'
	$(CARGO) test --release $(ALL) --test fuzz -- --seconds 1800 $(ARGS)

bench: setup-test ## Measure, for hours: handlers, healthy routes beside broken ones, and the contest on real Kafka: make bench ARGS='--workload 1k'
	$(CARGO) bench --locked --features sandbox --bench config --bench handlers --bench islands
	$(CARGO) bench --locked --features sandbox --bench contest -- $(ARGS)

bench-quick: setup-test ## Measure in ten minutes, against what is asked of it; fails where that is missed
	$(CARGO) bench --locked --features sandbox --bench contest -- --quick $(ARGS)

check: fmt clippy doc shell licences ## Everything that needs no test to run: style, documentation, scripts, licences

kafka-up: setup-test ## Start two real Kafka clusters and say where they are; Ctrl-C ends them
	$(CARGO) run --locked --quiet --package kafka-harness --bin kafka-up -- $(ARGS)

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(ALL) --no-deps --document-private-items

shell:
	@if command -v shellcheck >/dev/null; then shellcheck scripts/* .ci/run; \
	else echo 'shellcheck is not installed: the scripts were not checked'; fi

licences:
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --all-features check licenses bans sources; \
	else echo 'cargo-deny is not installed: licences and sources were not checked (cargo install cargo-deny)'; fi

setup-build:
	@scripts/setup build

setup-test:
	@scripts/setup test
