# The project's commands. `make help` lists them; CI runs `make test`.

SHELL := /bin/bash
# Debian has servers in /usr/sbin, which is not in every user's PATH.
export PATH := $(PATH):/usr/sbin
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Tools in alphabetical order. They run by version and are in no go.mod.
APIDIFF := golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
CRANE := github.com/google/go-containerregistry/cmd/crane@v0.22.1
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# How long each fuzz target runs.
FUZZTIME ?= 1s
# Which benchmarks `make microbench` runs, and the flags of `make bench`.
BENCH ?= .
BENCHFLAGS ?=
# How long `make soak` runs.
SOAKTIME ?= 10m
# How long `make hostile` runs.
HOSTILETIME ?= 30m
# How long `make campaign` runs.
CAMPAIGNTIME ?= 1h
TIMES ?= 50
# How many configurations of nginx `make long` compares with their imported rules.
CONFIGURATIONS ?= 2000
# How many decisions `make fuzz-words` compares, and its first seed; 0 draws one.
OPS ?= 1000000000
SEED ?= 0

# What `make dist` builds.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 freebsd/amd64 freebsd/arm64

STAGE := scripts/stage.sh
# All packages, four at a time: some mostly wait for servers. redislimit takes the longest, so it begins first.
PACKAGES := -p 4 ./redislimit work
# What computes with words, so that their size matters.
WORDS := . ./enginekit ./front ./layer ./limittest ./simulate \
	$(addprefix ./internal/,algorithm clock duration line memory rule scan table vectors word) \
	$(addprefix ./cmd/weir/internal/,api check collect filter picture screen)

# What is too slow for the race detector.
LONG := TestTheTourShowsWhatTheProgramSays|TestNothingIsWiderThanTheTerminal|TestProgramsOfEarlierVersionsAreNoticed

# What calls an engine that may have functions around it.
LAYERED := ./pace ./httplimit ./grpclimit ./cmd/weir/internal/serve ./cmd/weir/internal/api

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: deps lint race long test-386 fuzz readme ## run all checks on every module, like CI
	@$(STAGE) --total

ci: test ## the same as test

deps: ## install missing programs that the tests need
	@$(STAGE) --begin
	@$(STAGE) deps scripts/install-deps.sh

lint: fmt vet staticcheck ## check formatting; run vet for 64 and 32 bits, and staticcheck

fmt: ## fail if gofmt would change a file
	@$(STAGE) gofmt scripts/gofmt.sh

vet: ## run go vet, also for 32-bit machines; no file is for one processor alone
	@$(STAGE) 'vet' go vet work
	@$(STAGE) 'vet 386' env GOARCH=386 CGO_ENABLED=0 go vet work

staticcheck: ## run staticcheck
	@$(STAGE) staticcheck go run $(STATICCHECK) work

# -short: random tests draw fewer rounds, for the race detector makes a round five to ten times as slow. test-386 and long
# run all rounds but those of pace, redislimit and reloads, which make full runs. vet has run already.
race: ## test all modules under the race detector
	@$(STAGE) 'test with race detector' env CGO_ENABLED=1 go test -race -short -vet=off -parallel 4 -timeout 20m $(PACKAGES)

long: ## test what takes too long under the race detector
	@$(STAGE) 'long tests' go test -vet=off -run '$(LONG)' ./cmd/weir ./redislimit
	@$(STAGE) 'nginx import' env WEIR_NGINX=$(CONFIGURATIONS) go test -vet=off -run 'TestRulesDecideAsNginx$$' ./cmd/weir/internal/nginx

test-386: ## test what computes with words as 32-bit programs: limits, engines, counts and numbers, and the suite on Redis
	@$(STAGE) 'test 386' env GOARCH=386 CGO_ENABLED=0 go test -vet=off -timeout 20m $(WORDS)
	@$(STAGE) 'test 386 on Redis' env GOARCH=386 CGO_ENABLED=0 go test -vet=off -run 'TestOneServerPassesTheSuiteAndItsVectors$$' ./redislimit

test-layers: ## test queues, fronts and the daemon on engines below one empty function, and below five
	@for n in 1 5; do $(STAGE) "test below $$n layers" env WEIR_LAYERS=$$n go test -p 4 $(LAYERED) || exit; done

test-sql: ## run the suite on every driver and server of SQL
	@$(STAGE) 'test sql' go test -timeout 20m ./sqllimit/drivertest

bench-sql: ## measure the figures of docs/howto/sql.md, on servers of its own
	WEIR_SQL_BENCH=1 go test -count=1 -v -run TestTheEngineReachesItsFigures ./sqllimit/drivertest

test-reloads: ## reload rules files 10,000 times under load
	@$(STAGE) 'test reloads' env WEIR_TEST_RELOADS=10000 go test -race -timeout 20m -run 'TestReloadsUnderLoadLoseNoDecision$$' ./cmd/weir/internal/serve

test-deploy: ## decode the files of deploy into the types of Kubernetes, Compose and Envoy
	@$(STAGE) 'test deploy' env GOWORK=off go test -C deploy/deploytest

test-release: test-deploy ## build against the tags of a copy all that users import; run make dist twice; install the deb; ten minutes
	@$(STAGE) 'test release' env WEIR_RELEASE=1 go test -count=1 -v -timeout 30m ./internal/release

quick: ## test the root module in short form, a minute
	@$(STAGE) 'test' go test -short ./...

full: ## test all modules in full form, and run no other check
	@$(STAGE) 'test' go test work

fuzz: ## run every fuzz target for FUZZTIME (1s)
	@$(STAGE) fuzz scripts/fuzz.sh $(FUZZTIME)

readme: ## run the commands of README.md in a fresh clone
	@$(STAGE) readme scripts/readme.sh

docs: ## write docs/why/choosing.md, docs/reference/flags.md and the pictures from the program
	go test -count=1 -run 'TestTheTourShowsWhatTheProgramSays|TestThePageOfFlags|TestThePicturesOfTheAlgorithms' ./cmd/weir -write-docs

site: ## make a static site of docs/ in site/.dist; needs node and npm
	cd site && npm ci --no-audit --no-fund && npm run build

site-check: site ## check that site in Chromium: links, anchors, axe, a phone's width, search and dark; needs chromium
	cd site && npm run check

differential: ## compare the memory and the Redis engine for TIMES (50) times as long as a test
	WEIR_TIMES=$(TIMES) go test -count=1 -v -timeout 60m -run 'GiveTheSameAnswers$$|AgreeWithMemory' ./redislimit

redis-show: ## load two daemons that share one limit in Redis for a minute
	WEIR_REDIS_SHOW=1m go test -count=1 -v -run TestTwoDaemonsOnOneRedisShareALimit ./cmd/weir/internal/serve

outage-show: ## load two daemons while their Redis is frozen for ten seconds, with the default deadline
	WEIR_OUTAGE_SHOW=10s go test -count=1 -v -run TestTwoDaemonsAnswerByPolicyAndInTimeWhileRedisIsFrozen ./cmd/weir/internal/serve

sql-show: ## load two daemons on one PostgreSQL for a minute, and kill the server every five seconds
	WEIR_SQL_SHOW=1m go test -count=1 -v -run TestTwoDaemonsOnOnePostgreSQLShareALimitThroughACrash ./cmd/weir/internal/serve

sql-failover: ## promote a PostgreSQL replica that lags behind
	WEIR_SQL_FAILOVER=1 go test -count=1 -v -run TestAPromotedReplicaLosesOnlyWhatItLacked ./sqllimit/drivertest

redis-suite: ## run the suite on the server at URL=redis://…; it writes and deletes only keys that begin with weirtest-
	@test -n "$(URL)" || { echo 'usage: make redis-suite URL=redis://127.0.0.1:6379'; exit 2; }
	@WEIR_REDIS_URL='$(URL)' go test -count=1 -v -timeout 30m -run 'TestOneServerPassesTheSuiteAndItsVectors$$' ./redislimit

envoy-clients: ## ask the rate limit service with grpcurl, ghz and the client of envoyproxy/ratelimit, built from source
	WEIR_ENVOY_CLIENTS=1 go test -count=1 -v -timeout 20m -run TestOtherProgramsAreAnswered ./cmd/weir/internal/rls

show: ## check on the real clock that weir pace keeps its rate within 3 %
	scripts/pace.sh

bench: ## compare Weir with its rivals in 15 minutes; writes bench/RESULTS.md (BENCHFLAGS=-quick tries it out)
	go run ./bench/cmd/compare $(BENCHFLAGS)

bench-pairs: ## compare with the commit BASE in pairs of windows, ten minutes; writes bench/PAIRS.md
	@test -n "$(BASE)" || { echo 'usage: make bench-pairs BASE=COMMIT'; exit 2; }
	go run ./bench/cmd/compare -base $(BASE) $(BENCHFLAGS)

bench-redis: ## compare the Redis engine with its rivals in 5 minutes, on servers of its own; writes bench/REDIS.md
	go run ./bench/redis $(BENCHFLAGS)

bench-redis-pairs: ## compare the Redis engine with the commit BASE in pairs of windows, 7 minutes; writes bench/REDIS_PAIRS.md
	@test -n "$(BASE)" || { echo 'usage: make bench-redis-pairs BASE=COMMIT'; exit 2; }
	go run ./bench/redis -base $(BASE) $(BENCHFLAGS)

bench-layers: ## what Lease, DenyUntil and Guard gain and cost, a minute; writes bench/LAYERS.md
	go run ./bench/layers $(BENCHFLAGS)

bench-http: ## compare the middleware for net/http with its rivals in a minute, and measure grpclimit; writes bench/HTTP.md
	go run ./bench/middleware $(BENCHFLAGS)

bench-resp: ## compare weir serve --resp with a loop that does not decide and with Redis, and --grpc with an echo, in four minutes; writes bench/RESP.md
	go run ./bench/resp $(BENCHFLAGS)

bench-rules: ## decide by ten rules and by 10,000, and reload these, half a minute
	go test -run '^$$' -bench 'Decide$$|Reload$$' -benchtime 4s ./cmd/weir/internal/rules

bench-replay: ## weir replay on a log of ten million lines, three minutes; writes bench/REPLAY.md
	go run ./bench/replay $(BENCHFLAGS)

bench-cliffs: ## the cost of a decision over the numbers in a limit, 30 minutes; writes bench/CLIFFS.md
	go run ./bench/cliffs -all -random 30 $(BENCHFLAGS)

bench-waiting-redis: ## callers of three processes that wait for keys of one Redis, 10 minutes; writes bench/WAITING_REDIS.md (BASE=COMMIT: beside it, also 10)
	go run ./bench/waiting $(if $(BASE),-base $(BASE)) $(BENCHFLAGS)

bench-large: ## ten million keys of each kind of entry, 5 minutes and 3 GB; writes bench/LARGE.md
	go run ./bench/large $(BENCHFLAGS)

fuzz-words: ## compare OPS (10^9) decisions on words with 128 bits, 40 minutes; SEED=n continues
	go test -count=1 -v -timeout 0 -run 'TestWordsDecideLikeStates$$' ./internal/word -ops $(OPS) -seed $(SEED)

soak: ## run the memory engine with random rules, keys, clock steps and snapshots for SOAKTIME (10m)
	go run ./bench/soak -duration $(SOAKTIME)

hostile: ## attack a daemon that serves honest clients, for HOSTILETIME (30m)
	go run ./bench/hostile -duration $(HOSTILETIME)

campaign: ## break Redis servers at random under load, for CAMPAIGNTIME (1h), and check every bound; writes bench/CAMPAIGN.md
	go run ./bench/campaign -duration $(CAMPAIGNTIME) -o bench/CAMPAIGN.md

microbench: ## run the benchmarks that match BENCH (all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem work

apidiff: ## compare the API with the last tag; fails if a change breaks programs of users
	@scripts/apidiff.sh $(APIDIFF)

tag: ## tag VERSION=v0.1.0 of every module that users import; pushes nothing
	@scripts/tag.sh '$(VERSION)'

dist: ## build what a version ships, from the last commit, into dist: programs, packages, an image; 15 minutes the first time
	@PLATFORMS='$(PLATFORMS)' scripts/dist.sh $(NFPM) $(CYCLONEDX) $(CRANE)

# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' Makefile)
