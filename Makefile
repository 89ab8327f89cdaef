# Trainyard's commands. `make help` lists them; each check of .ci/run is one of
# these targets, so that a failure there is one command away here.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO            ?= go
GOTESTFLAGS   ?=
FUZZTIME      ?= 30s
# Tests that need another program: to be compiled by vet and lint, run by their targets.
EXTRA_TAGS    := versitygw,interop,e2e,e2e_slow,kubectl
BENCHFLAGS    ?=
E2EFLAGS      ?=
# Packages that depend on what this matches are not run under the race detector.
RACE_SKIP     ?= ^$$
GOLANGCI_LINT_VERSION := v2.15.0

# One set of flags for programs, tests and lint alike, so that Go compiles what
# they share (all of Kubernetes' and Tekton's libraries) once, and not twice.
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath)
export CGO_ENABLED ?= 0

# Every Go module with code of ours: the platform tool, the trainer, and the
# generator of its kernels. (tools/ only pins tools.)
MODULES := . trainer $(wildcard trainer/internal/kernel/gen)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
TRAINER_SRC := $(wildcard $(shell git ls-files --cached --others --exclude-standard trainer))

RUN_DIR      ?= runs/local
RUN_FLAGS    ?=
CORPUS_BYTES ?= 2000000
BENCH_BYTES  ?= 1e9
CORPUS       := runs/corpus/godoc-$(CORPUS_BYTES).txt

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: trainer
trainer: bin/trainer ## Build the trainer, one static binary: bin/trainer

bin/trainer: $(TRAINER_SRC)
	cd trainer && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false \
	  -ldflags "-X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o ../bin/trainer ./cmd/trainer

.PHONY: corpus
corpus: $(CORPUS) ## Cut a corpus from the Go standard library's doc comments

$(CORPUS):
	$(GO) run ./scripts/godoc-corpus -bytes $(CORPUS_BYTES) -o $@

.PHONY: run
run: bin/trainer $(CORPUS) ## The whole lifecycle on this machine, in about a minute
	bin/trainer run --run-dir $(RUN_DIR) --corpus $(CORPUS) $(RUN_FLAGS)

.PHONY: qa
qa: bin/trainer ## Learn 40 facts by heart from scratch, then answer them before and after
	bin/trainer train --run-dir runs/qa --qa examples/qa/facts.txt
	bin/trainer sample --run-dir runs/qa --qa examples/qa/facts.txt

##@ Cluster

# Settings are environment variables: docs/demo.md.

# Built each time: go build knows better than make what it depends on.
.PHONY: bin/demo
bin/demo:
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $@ ./cmd/demo

.PHONY: demo
demo: bin/demo ## Bring up a real cluster here (kind) and train a model on it with Tekton
	@bin/demo up

.PHONY: cluster
cluster: bin/demo ## The same without the training: kind, registry, S3, Tekton, tasks, pipelines
	@bin/demo cluster

.PHONY: down
down: bin/demo ## Remove the cluster and everything that was started for it; the cache stays
	@bin/demo down

.PHONY: e2e
e2e: cluster ## Test everything together on that cluster; it stays
	CGO_ENABLED=0 $(GO) test -trimpath -tags e2e -count=1 -timeout 45m $(E2EFLAGS) ./internal/e2e

##@ Images

# What images are called, and the registries among them that are plain http.
REPOSITORY    ?= 127.0.0.1:5000/trainyard
INSECURE      ?= 127.0.0.1:5000
TRAINER_IMAGE ?= $(REPOSITORY)/trainer:dev
# A builder by digest; empty makes ours.
BUILDER       ?=
BUILDER_FLAGS ?=
# For example --ca-file, or GOPROXY=https://proxy.example.
IMAGE_FLAGS   ?= --docker-network host

.PHONY: bin/yard bin/go-offline
bin/yard:
	@$(GO) build -buildvcs=false -ldflags "-X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o $@ ./cmd/yard

bin/go-offline:
	@$(GO) build -buildvcs=false -ldflags "-s -w -buildid=" -o $@ ./buildpacks/go-offline/cmd/go-offline

LIFECYCLE := github.com/buildpacks/lifecycle
bin/lifecycle/launcher: scripts/components/cluster/go.mod
	@cd scripts/components/cluster && version=$$($(GO) list -m -f '{{.Version}}' $(LIFECYCLE)) && \
	  $(GO) build -buildvcs=false -ldflags "-s -w -X $(LIFECYCLE)/cmd.Version=$${version#v}" \
	    -o $(CURDIR)/bin/lifecycle/ $(LIFECYCLE)/cmd/lifecycle $(LIFECYCLE)/cmd/launcher

.PHONY: builder
builder: bin/yard bin/go-offline bin/lifecycle/launcher ## Make a builder from Debian packages and this Go, and push it to REPOSITORY
	@scripts/install-debian.sh mmdebstrap >&2
	@bin/yard builder create --repository $(REPOSITORY) --insecure-registry "$(INSECURE)" \
	  --lifecycle-dir bin/lifecycle --buildpack bin/go-offline $(BUILDER_FLAGS)

.PHONY: trainer-image
trainer-image: bin/yard ## Build the trainer's image with Docker, as the task does: TRAINER_IMAGE
	@builder="$(BUILDER)"; \
	[[ -n $$builder ]] || builder=$$($(MAKE) builder | awk '$$1 == "builder" { print $$2 }'); \
	bin/yard image build --workspace . --folder trainer --builder "$$builder" \
	  --insecure-registry "$(INSECURE)" --image $(TRAINER_IMAGE) $(IMAGE_FLAGS)

##@ Check

.PHONY: test
test: ## Run the tests of every module
	@for m in $(MODULES); do (cd $$m && $(GO) test $(GOTESTFLAGS) ./...); done

.PHONY: race
race: ## Run the tests under the race detector (needs gcc: installed if missing)
	@scripts/install-debian.sh gcc:gcc,libc6-dev
	@for m in $(MODULES); do (cd $$m && CGO_ENABLED=1 $(GO) test -race $(GOTESTFLAGS) \
	  $$($(GO) list -f '{{.ImportPath}} {{join .Deps " "}}' ./... | grep -Ev '$(RACE_SKIP)' | cut -d' ' -f1)); done

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (30s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh $(MODULES)

.PHONY: lint
lint: gofmt vet golangci shellcheck ## gofmt, go vet, golangci-lint, shellcheck

.PHONY: gofmt
gofmt:
	@bad=$$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r gofmt -l); \
	if [[ -n $$bad ]]; then printf 'not gofmt-ed, run gofmt -w:\n%s\n' "$$bad" >&2; exit 1; fi

.PHONY: vet
vet:
	@for m in $(MODULES); do (cd $$m && $(GO) vet -tags $(EXTRA_TAGS) ./...); done
	@# The portable kernels: another port must build too.
	@cd trainer && GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...

.PHONY: golangci
golangci:
	@lint=$$(scripts/golangci-lint.sh $(GOLANGCI_LINT_VERSION)); \
	for m in $(MODULES); do (cd $$m && "$$lint" run --build-tags $(EXTRA_TAGS) --config "$(CURDIR)/.golangci.yaml" ./...); done

.PHONY: shellcheck
shellcheck:
	@scripts/install-debian.sh shellcheck
	@git ls-files --cached --others --exclude-standard '*.sh' .ci/run | xargs -r shellcheck -x

.PHONY: tidy-check
tidy-check: ## Fail when a go.mod or go.sum is not tidy
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff && $(GO) mod verify); done

.PHONY: generate
generate: ## Generate the SIMD kernels again
	cd trainer && $(GO) generate ./internal/kernel

# What the generator writes.
GENERATED := 'trainer/internal/kernel/*_amd64.s' 'trainer/internal/kernel/*_stub_amd64.go'

.PHONY: generate-check
generate-check: generate ## Fail when the committed kernels are not what the generator writes
	@git diff --exit-code --stat -- $(GENERATED)
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
	if [[ -n $$new ]]; then printf 'generated but not committed:\n%s\n' "$$new" >&2; exit 1; fi

.PHONY: same-bits
same-bits: ## Train in differently compiled tests; fail unless the weights agree
	scripts/same-bits.sh

.PHONY: store-test
store-test: ## Test the S3 store against a real server (versitygw)
	@export TRAINYARD_VERSITYGW; TRAINYARD_VERSITYGW=$$(sh scripts/versitygw.sh); \
	cd trainer && $(GO) test $(GOTESTFLAGS) -tags versitygw -run Versitygw ./...

.PHONY: interop
interop: ## Exchange models with Hugging Face's transformers, both ways
	scripts/interop/run.sh

.PHONY: kustomize-check
kustomize-check: bin/demo ## Compare kustomize's output of deploy/ with yard render's (kubectl, or that of make cluster)
	@export TRAINYARD_KUBECTL; TRAINYARD_KUBECTL=$$(command -v kubectl || bin/demo program kubectl); \
	$(GO) test $(GOTESTFLAGS) -tags kubectl -run Kustomize ./internal/conformance

##@ Ship

RELEASE_DIR   ?= dist/$(VERSION)
RELEASE_FLAGS ?=

.PHONY: release
release: ## Make a release in RELEASE_DIR; RELEASE_FLAGS="--repository … --push" pushes its images
	$(GO) run ./cmd/release --version $(VERSION) --commit "$(COMMIT)" \
	  --created "$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)" --to $(RELEASE_DIR) $(RELEASE_FLAGS)

##@ Measure

.PHONY: bench
bench: ## Training speed and memory beside PyTorch and OpenBLAS
	@mkdir -p runs
	$(GO) run ./bench -o runs/bench.json $(BENCHFLAGS)
	@$(MAKE) bench-data

.PHONY: bench-data
bench-data: ## Speed of preparing data and of learning a vocabulary, a minute or so
	cd trainer && $(GO) test -run - -bench 'Prepare$$' -benchtime 5x ./internal/stage
	cd trainer && $(GO) test -run - -bench 'Train$$' -benchtime 1x ./internal/bpe

.PHONY: bench-corpus
bench-corpus: bin/trainer ## Prepare a synthetic corpus of BENCH_BYTES (1e9) and print the peak memory
	@mkdir -p runs/corpus
	$(GO) run ./scripts/synthetic-corpus -bytes $(BENCH_BYTES) -o runs/corpus/synthetic.txt
	GOMEMLIMIT=400MiB bin/trainer prepare --run-dir runs/bench-corpus --corpus runs/corpus/synthetic.txt & \
	  pid=$$!; peak=0; while kill -0 $$pid 2>/dev/null; do \
	    now=$$(awk '/VmHWM/ { print $$2 }' /proc/$$pid/status 2>/dev/null || true); peak=$${now:-$$peak}; sleep 0.2; done; \
	  wait $$pid; echo "peak memory: $$((peak / 1024)) MiB"
	@rm -rf runs/corpus/synthetic.txt runs/bench-corpus

.PHONY: bench-overhead
bench-overhead: cluster ## What Tekton and Kubernetes add to each task, on the demo's cluster
	$(GO) run ./bench/overhead

.PHONY: bench-tools
bench-tools: ## Install what bench compares with: Debian's PyTorch and OpenBLAS
	@/usr/bin/python3 -c 'import torch' 2>/dev/null || scripts/install-debian.sh no-command:python3-torch
	@[[ -e /usr/include/x86_64-linux-gnu/cblas.h ]] || scripts/install-debian.sh no-command:libopenblas-dev
	@scripts/install-debian.sh gcc:gcc,libc6-dev

##@ Clean

.PHONY: clean
clean: ## Remove what was built (runs/ stays)
	rm -rf bin dist coverage*
