# Signet. `make help` explains every target. Building, running and testing need Go and a C compiler, nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
CACHE := $(CURDIR)/.cache
TOOLS := $(CACHE)/bin
TEST_FLAGS ?=
TEST_TIMEOUT ?= 60m
SEEDS ?= 10000
JOBS ?= 200
SEED ?=
QUERIES ?= 1000
FIRST ?= 1
LDFLAGS := -X github.com/signet-io/signet/internal/cli.Version=$(VERSION) -X main.version=$(VERSION)

GOLANGCI_VERSION := v2.15.0
BUF_VERSION := 1.75.0
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2

# The newest whose runnable jar is published.
NESSIE_VERSION := 0.99.0

AZURITE_VERSION := 3.37.0

NESSIE := $(CACHE)/nessie/nessie-quarkus-$(NESSIE_VERSION)-runner.jar
AZURITE := $(CACHE)/azurite/$(AZURITE_VERSION)
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
BUF_DIR := $(CACHE)/buf-$(BUF_VERSION)
BUF := $(BUF_DIR)/node_modules/.bin/buf
PROTOC_GENS := $(TOOLS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(TOOLS)/protoc-gen-go-grpc-$(PROTOC_GEN_GO_GRPC_VERSION)

# The parts that decide about commits or share state between goroutines run under the race detector.
RACE_PACKAGES := ./coordinator/... ./scheduler/... ./plugins/...
# DuckDB. Everything else is built without cgo, so that tests and binaries share what is compiled.
CGO_PACKAGES := ./executor/... ./cmd/signet-executor/...

.PHONY: help
help: ## This text
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/signet, bin/signet-executor and bin/plugins, and lock the plugins
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/signet ./cmd/signet
	CGO_ENABLED=1 go build -ldflags '$(LDFLAGS)' -o bin/signet-executor ./cmd/signet-executor
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/plugins/signet-sink-iceberg ./cmd/signet-sink-iceberg
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/plugins/signet-sink-delta ./cmd/signet-sink-delta
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/plugins/signet-sink-minimal ./examples/sinks/minimal
	bin/signet sink lock

.PHONY: run
run: build ## Start a scheduler, two executors and the sink process, load the example data, query it, stop everything
	examples/insert/run.sh

.PHONY: test
test: test-unit test-race test-e2e ## Run every test that needs only Go and a C compiler

.PHONY: test-unit
test-unit: test-plain test-duckdb

.PHONY: test-plain
test-plain:
	CGO_ENABLED=0 go test -timeout 20m $(TEST_FLAGS) $$(go list ./... | grep -vE '^github.com/signet-io/signet/(coordinator|scheduler|plugins|executor|cmd/signet-executor|test)(/|$$)')

.PHONY: test-duckdb
test-duckdb:
	CGO_ENABLED=1 go test -timeout 20m $(TEST_FLAGS) $(CGO_PACKAGES)

.PHONY: test-race
test-race:
	CGO_ENABLED=1 go test -race -timeout 20m $(TEST_FLAGS) $(RACE_PACKAGES)

.PHONY: test-e2e
test-e2e: test-processes test-queries ## Run only the tests that start real processes

.PHONY: test-processes
test-processes:
	CGO_ENABLED=0 go test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./test/...

.PHONY: test-queries
test-queries:
	CGO_ENABLED=1 go test -timeout 20m $(TEST_FLAGS) ./test/tpch ./test/rowlevel

.PHONY: sim
sim: ## Play SEEDS schedules of the job engine in which everything goes wrong, from FIRST on (docs/simulation.md)
	CGO_ENABLED=0 go test -count=1 -timeout 0 -v -run NoSchedule ./scheduler/sim -seeds $(SEEDS) -first $(FIRST)

.PHONY: chaos
chaos: build ## Run JOBS statements while a process is killed every second; SEED repeats a run (docs/fault-points.md)
	SIGNET_BIN=$(CURDIR)/bin SIGNET_CHAOS_JOBS=$(JOBS) SIGNET_SEED=$(SEED) CGO_ENABLED=0 go test -count=1 -timeout 60m -v -run TestChaos ./test/e2e

.PHONY: mutants
mutants: ## Break Signet on purpose, in one way after another, and show that the tests of docs/semantics.md and the simulation notice
	CGO_ENABLED=0 go run ./test/semantics run
	CGO_ENABLED=0 go test -count=1 -v -tags mutant -run 'Mutants|Shrink' ./scheduler/sim

.PHONY: tpch
tpch: build ## Compare TPC-H at scale 0.1, and QUERIES random queries from seed FIRST on, over 3 executors with one DuckDB (needs Python 3)
	QUERIES=$(QUERIES) FIRST=$(FIRST) test/tpch/run.sh

.PHONY: lint
lint: lint-go lint-proto lint-semantics ## Check style, dependency rules, protos, that generated code is current, and that each statement has its tests

.PHONY: lint-go
lint-go: $(GOLANGCI) ## Check Go code
	$(GOLANGCI) run ./...
	$(GOLANGCI) fmt --diff

.PHONY: lint-semantics
lint-semantics: ## Check that each statement of docs/semantics.md has tests, and each test something that makes it fail
	CGO_ENABLED=0 go run ./test/semantics check

.PHONY: lint-proto
lint-proto: $(BUF) $(PROTOC_GENS) ## Check protos and that the generated code is theirs
	cd api && $(BUF) lint
	rm -rf $(CACHE)/generated && mkdir -p $(CACHE)/generated
	cd api && PATH="$(CACHE)/gen:$$PATH" $(BUF) generate -o $(CACHE)/generated
	cd $(CACHE)/generated && find . -name '*.pb.go' | sort > ../generated.list
	cd api && find . -name '*.pb.go' | sort | diff - $(CACHE)/generated.list
	cd api && while read -r f; do diff "$$f" "$(CACHE)/generated/$$f" || { echo "$$f is not what its proto generates: run make generate"; exit 1; }; done < $(CACHE)/generated.list

.PHONY: generate
generate: $(BUF) $(PROTOC_GENS) ## Generate Go code from the protos, and the Python example from its template and the Go code
	cd api && PATH="$(CACHE)/gen:$$PATH" $(BUF) generate
	CGO_ENABLED=0 go test -count=1 -run PythonIsTheExample ./plugins/scaffold -update

.PHONY: fmt
fmt: $(GOLANGCI) ## Format Go code
	$(GOLANGCI) fmt

.PHONY: servers
servers: $(TOOLS)/weed $(CACHE)/rest-lib/complete $(NESSIE) ## Build the servers that tests of catalogs and object stores run against, where they are there: SeaweedFS (5 minutes), Iceberg's REST adapter (needs Maven and Java 17), Nessie (Java 21)

.PHONY: test-s3
test-s3: build $(TOOLS)/weed ## Prove on SeaweedFS what somebody who has taken over an executor can do in an object store: nothing but write its attempt's prefix
	SIGNET_REQUIRE_SERVERS=1 SIGNET_BIN=$(CURDIR)/bin CGO_ENABLED=0 go test -count=1 -timeout 20m -v ./test/s3

.PHONY: test-azure
test-azure: $(AZURITE) ## Hold the client of Azure Blob Storage to its suite on Azurite, Microsoft's own server of the protocol (needs Node.js)
	SIGNET_REQUIRE_SERVERS=1 CGO_ENABLED=0 go test -count=1 -timeout 15m -v ./test/azure

.PHONY: test-catalogs
test-catalogs: build $(TOOLS)/weed $(NESSIE) ## Hold REST catalogs of other makers, SeaweedFS and Nessie, to the contracts of catalogs and of jobs, with credentials that they vend (needs Maven and Java 21)
	SIGNET_REQUIRE_SERVERS=1 SIGNET_BIN=$(CURDIR)/bin CGO_ENABLED=0 go test -count=1 -timeout 30m -v ./test/catalogs

.PHONY: interop
interop: build ## Have PyIceberg and Spark read what Signet writes, and write beside it (needs Python 3.11, Java 17, Maven)
	test/interop/run.sh

.PHONY: test-glue
test-glue: build $(CACHE)/moto-venv/complete ## Have Signet and PyIceberg write to the same tables of AWS Glue, with moto as Glue and S3 (needs Python 3.11)
	SIGNET_TEST_MOTO=$(CACHE)/moto-venv/bin/moto_server CGO_ENABLED=0 go test -count=1 -run TestMoto ./catalog/glue
	cd test/glue && SIGNET_BIN=$(CURDIR)/bin PYTHONDONTWRITEBYTECODE=1 $(CACHE)/moto-venv/bin/python -m pytest -p no:cacheprovider -ra --tb=short .

.PHONY: bench
bench: build ## Measure the scheduler alone, its restart, INSERT against DuckDB's COPY, and the latency of a one-row INSERT (docs/benchmarks.md)
	test/bench/run.sh

.PHONY: nightly
nightly: ## Everything, longer: all tests thrice, fuzzing, mutants, simulation, chaos, TPC-H, interop, benchmarks
	$(MAKE) lint
	SIGNET_CRASHES=all $(MAKE) test TEST_FLAGS='-count=3' TEST_TIMEOUT=4h
	for t in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$t/*_test.go | sed 's/func //'); do go test -run '^$$' -fuzz "^$$f$$" -fuzztime 60s "$$t"; done; done
	$(MAKE) mutants
	$(MAKE) sim
	$(MAKE) chaos
	$(MAKE) tpch
	$(MAKE) servers
	$(MAKE) test-s3
	$(MAKE) test-azure
	$(MAKE) test-catalogs
	$(MAKE) interop
	$(MAKE) test-glue
	$(MAKE) bench

.PHONY: clean
clean: ## Remove what the targets made, tools included
	rm -rf bin $(CACHE)

$(GOLANGCI):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(TOOLS)/weed: test/servers/weed/build/go.mod
	@mkdir -p $(TOOLS)
	cd test/servers/weed/build && CGO_ENABLED=0 go build -o $@ github.com/seaweedfs/seaweedfs/weed
	touch $@

$(CACHE)/rest-lib/complete: test/servers/restfixture/pom.xml
	rm -rf $(@D) && mkdir -p $(@D)
	mvn --quiet --batch-mode -f $< org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=$(@D)
	touch $@

$(CACHE)/moto-venv/complete: test/glue/requirements.txt
	rm -rf $(@D) && $${PYTHON:-python3} -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(NESSIE):
	@mkdir -p $(@D)
	mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get -Dtransitive=false -Dartifact=org.projectnessie.nessie:nessie-quarkus:$(NESSIE_VERSION):jar:runner
	mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dartifact=org.projectnessie.nessie:nessie-quarkus:$(NESSIE_VERSION):jar:runner -DoutputDirectory=$(@D)

$(AZURITE):
	npm install --no-save --no-audit --no-fund --loglevel=error --prefix $(@D) azurite@$(AZURITE_VERSION)
	touch $@

$(BUF):
	npm install --no-save --no-audit --no-fund --loglevel=error --prefix $(BUF_DIR) @bufbuild/buf@$(BUF_VERSION)

# The generators carry their version in the file name, so that a new version is built, and are found under their plain name in gen.
$(TOOLS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION):
	@mkdir -p $(TOOLS) $(CACHE)/gen
	GOBIN=$(TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go@$(PROTOC_GEN_GO_VERSION)
	mv $(TOOLS)/protoc-gen-go $@ && ln -sf $@ $(CACHE)/gen/protoc-gen-go

$(TOOLS)/protoc-gen-go-grpc-$(PROTOC_GEN_GO_GRPC_VERSION):
	@mkdir -p $(TOOLS) $(CACHE)/gen
	GOBIN=$(TOOLS) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(PROTOC_GEN_GO_GRPC_VERSION)
	mv $(TOOLS)/protoc-gen-go-grpc $@ && ln -sf $@ $(CACHE)/gen/protoc-gen-go-grpc
