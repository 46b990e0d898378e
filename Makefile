# The project's commands. `make help` lists them; `make test` is what CI runs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Keep the tools alphabetized; they run by version and are in no go.mod.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# How long each fuzz target runs.
FUZZTIME ?= 5s
# Which benchmarks `make microbench` runs, and the flags of `make bench`.
BENCH ?= .
BENCHFLAGS ?=
# How long `make soak` runs.
SOAKTIME ?= 10m
# How long `make hostile` runs.
HOSTILETIME ?= 30m
TIMES ?= 50

STAGE := scripts/stage.sh

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: deps lint race test-386 fuzz readme ## everything, for every module: what CI runs
	@$(STAGE) --total

ci: test ## the same as test

deps: ## install what the tests need besides Go, where it is missing
	@$(STAGE) --begin
	@$(STAGE) deps scripts/install-deps.sh

lint: fmt vet staticcheck ## formatting, vet on three architectures, staticcheck

fmt: ## fail if gofmt would change a file
	@$(STAGE) gofmt scripts/gofmt.sh

vet: ## go vet, also for a 32-bit and an ARM machine
	@$(STAGE) 'vet' go vet work
	@$(STAGE) 'vet 386' env GOARCH=386 CGO_ENABLED=0 go vet work
	@$(STAGE) 'vet arm64' env GOARCH=arm64 CGO_ENABLED=0 go vet work

staticcheck: ## staticcheck
	@$(STAGE) staticcheck go run $(STATICCHECK) work

race: ## the tests of all modules under the race detector
	@$(STAGE) 'test with race detector' env CGO_ENABLED=1 go test -race work

test-386: ## the tests of all modules as 32-bit programs
	@$(STAGE) 'test 386' env GOARCH=386 CGO_ENABLED=0 go test work

quick: ## the tests of all modules, nothing else
	@$(STAGE) 'test' go test work

fuzz: ## every fuzz target for FUZZTIME (5s)
	@$(STAGE) fuzz scripts/fuzz.sh $(FUZZTIME)

readme: ## the commands of README.md, in a fresh clone
	@$(STAGE) readme scripts/readme.sh

differential: ## the memory and the Redis engine against each other, TIMES (50) as long as in a test
	WEIR_TIMES=$(TIMES) go test -count=1 -v -timeout 60m -run 'GiveTheSameAnswers$$|AgreeWithMemory' ./redislimit

redis-show: ## a minute of load on two daemons that share one limit in Redis
	WEIR_REDIS_SHOW=1m go test -count=1 -v -run TestTwoDaemonsOnOneRedisShareALimit ./cmd/weir

redis-suite: ## the suite against the server at URL=redis://…: writes keys below weirtest-…, deletes them, and touches nothing else
	@test -n "$(URL)" || { echo 'usage: make redis-suite URL=redis://127.0.0.1:6379'; exit 2; }
	@WEIR_REDIS_URL='$(URL)' go test -count=1 -v -timeout 30m -run 'TestOneServerPassesTheSuiteAndItsVectors$$' ./redislimit

show: ## what only the real clock shows: weir pace keeps its pace within 3 %
	scripts/pace.sh

bench: ## Weir beside its rivals, a quarter of an hour; writes bench/RESULTS.md (BENCHFLAGS=-quick tries it out)
	go run ./bench/cmd/compare $(BENCHFLAGS)

bench-redis: ## the Redis engine beside its rivals on servers of its own, five minutes; writes bench/REDIS.md
	go run ./bench/redis $(BENCHFLAGS)

soak: ## the memory engine under random rules, keys, clock steps and snapshots for SOAKTIME (10m)
	go run ./bench/soak -duration $(SOAKTIME)

hostile: ## a daemon under every attack we know, beside honest clients, for HOSTILETIME (30m)
	go run ./bench/hostile -duration $(HOSTILETIME)

microbench: ## the benchmarks of the packages that match BENCH (all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem work

.PHONY: help test ci show deps lint fmt vet staticcheck race test-386 quick fuzz readme differential redis-show redis-suite bench bench-redis soak hostile microbench
