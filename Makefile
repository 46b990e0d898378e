# The project's commands. `make help` lists them. People run `make test`; CI runs `make ci`, which begins with it.

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
# How many times as many rounds `make random` draws.
TIMES ?= 10
# The flags of `make random` (-run 'Alike$$'), `make campaign`, `make hostile` and `make soak`.
FLAGS ?=
# What `make dist` builds.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 freebsd/amd64 freebsd/arm64

STAGE := scripts/stage.sh
# grpcnotrace leaves out the pages of grpc-go, and -s -w the symbols: together they halve the program. Without being told,
# Go names no commit in a program of a workspace.
BUILD := -buildvcs=$(if $(wildcard .git),true,false) -tags grpcnotrace -ldflags '-s -w'

# What shares memory between goroutines, so that the race detector has something to find. What takes the longest begins first.
RACE := ./redislimit/... $(addprefix ./cmd/weir/internal/,serve pace fetch) . ./pace $(addprefix ./internal/,clock fair line memory table waittest word) ./enginekit ./layer \
	./front ./httplimit/... ./grpclimit ./promlimit ./otellimit ./sqllimit/... ./fetch \
	$(addprefix ./cmd/weir/internal/,api auth decide peers kuadrant live metrics notice override resp rls top traces)
# What counts shares, bytes or steps of many decisions, mostly in virtual time. The race detector makes these tests five times as slow,
# and beside them stand tests with all the same goroutines, so `make test` runs them without it, and `make long` with it.
COUNTS := TestABlockOfAPrefixReachesTheClientsItNamesOrWarns TestABlockOfAllRulesReachesTheClientItNamesOrWarns \
	TestABlockReachesTheClientItNamesOrWarns TestAClientThatFollowsTheDraftIsSeldomRefused TestAFloodOfNewKeysNeitherLiftsABanNorBeginsOne \
	TestASettlementThatIsNotRecordedIsAnError TestATransportReachesEachAnnouncedRate TestBanStatesAreSmall \
	TestCallersThatLeaveWasteLittleOfARate TestCallersThatWaitForHoursKeepTheirOrder TestCallersWithoutTimeTakeNoBookingFromOthers \
	TestEqualProcessesShareSlots TestEqualProcessesShareWindowsAndLogs TestEvictionFollowsTheClockAndNotTheTimeOfTheDecision \
	TestFlowsOfSeveralCostsShareBookedLimitsByWeight TestHopelessCallsCostOtherCallersNothing \
	TestHopelessWaitsOfTheDaemonCostOtherCallersNothing TestHostilePagesAreReadInLinearTime TestIncompleteSnapshotsAreRefused TestKeyCost \
	TestLargeCostsHaveAShareOnlyByBooking TestLinksOfOnePageAreBounded TestLoadedStatesOfUnusedRulesAreEvicted \
	TestManyBookedKeysAreFewCallsAtRest TestRoomComesBackAfterAFloodAndNotDuringIt TestTheAdviceForANetworkReachesItAlone \
	TestTwoZonesOnAKeyNeverAdmitMoreThanTheCount
# The packages that they stand in, and the pattern of their names.
COUNTING := ./cmd/weir/internal/serve . ./pace ./httplimit ./fetch ./cmd/weir/internal/api
COUNTED := ^($(shell echo $(COUNTS) | tr ' ' '|'))$$
# The other packages, but for the measuring programs: their tests take minutes, and belong to CI. Again the slowest begin first.
SLOW := $(addprefix github.com/weirflow/weir/,cmd/weir/internal/page/browsertest cmd/weir/internal/sqlengine/drivertest cmd/weir examples/worker \
	internal/release internal/redistest cmd/weir/internal/rules)
REST = $(SLOW) $(filter-out $(SLOW) $(shell go list $(RACE)) github.com/weirflow/weir/bench/%,$(shell go list work))
# What -short makes shorter.
SHORTER = $(shell grep -rlE --include=*_test.go --exclude-dir=bench 'testing[.]Short|randtest[.]Seeds|randtest[.]Rounds' . | xargs -n 1 dirname | sort -u)
# What computes with words, so that their size matters.
WORDS := . ./enginekit ./front ./layer ./limittest ./simulate \
	$(addprefix ./internal/,algorithm calendar clock compiled duration line memory replay scan table tape vectors word) \
	$(addprefix ./cmd/weir/internal/,api check collect filter picture screen)
# What is too slow for people.
LONG := TestTheTourShowsWhatTheProgramSays|TestNothingIsWiderThanTheTerminal
# What takes its seeds from internal/randtest.
RANDOM_TESTS = $(shell grep -rl --include=*_test.go --exclude-dir=bench '^\s.*weir/internal/randtest"$$' . | xargs -n 1 dirname | sort -u)
# What calls an engine that may have functions around it.
LAYERED := ./pace ./httplimit ./grpclimit ./cmd/weir/internal/serve ./cmd/weir/internal/api

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the program: bin/weir
	go build $(BUILD) -o bin/weir ./cmd/weir

# -short: random tests draw fewer rounds, because the race detector makes a round five to ten times as slow. -p 4: some
# packages mostly wait for servers. atexit_sleep_ms: otherwise each program that a test starts takes a second to exit.
test: deps ## run the tests of all modules; eight minutes on two cores
	@$(STAGE) --begin
	@$(STAGE) 'test with race detector' env CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 go test -race -short -vet=off -p 4 -parallel 4 -timeout 20m -skip '$(COUNTED)' $(RACE)
	@$(STAGE) 'test counts' go test -short -vet=off -p 4 -timeout 20m -run '$(COUNTED)' $(COUNTING)
	@$(STAGE) 'test' go test -short -vet=off -p 4 -timeout 20m $(REST)
	@$(STAGE) --total

ci: test fmt lint long test-386 fuzz readme deploy apidiff ## run everything that CI runs

deps: ## install missing programs that the tests need
	@$(STAGE) deps scripts/install-deps.sh

fmt: ## fail if gofmt would change a file
	@$(STAGE) gofmt scripts/gofmt.sh

lint: ## run vet for 64 and 32 bits, and staticcheck; build without SQLite; read the subjects of commits
	@$(STAGE) subjects scripts/subjects.sh
	@$(STAGE) vet go vet work
	@$(STAGE) 'vet 386' env GOARCH=386 CGO_ENABLED=0 go vet work
	@$(STAGE) staticcheck go run $(STATICCHECK) work
	@$(STAGE) 'without SQLite' go test -tags nosqlite ./cmd/weir/internal/sqlengine

long: ## test what takes minutes: whole forms of random tests, the measuring programs
	@$(STAGE) 'long tests' go test -vet=off -run '$(LONG)' ./cmd/weir
	@$(STAGE) 'counts with race detector' env CGO_ENABLED=1 go test -race -short -vet=off -p 4 -parallel 4 -timeout 20m -run '$(COUNTED)' $(COUNTING)
	@$(STAGE) 'whole forms' go test -vet=off -p 4 -timeout 30m $(SHORTER)
	@$(STAGE) 'nginx import' env WEIR_TIMES=33 go test -vet=off -run 'TestRulesDecideAsNginx$$' ./cmd/weir/internal/nginx
	@$(STAGE) 'test bench' go test -short -vet=off -timeout 20m ./bench/...

test-386: ## test what computes with words as 32-bit programs, and the suite on Redis
	@$(STAGE) 'test 386' env GOARCH=386 CGO_ENABLED=0 go test -vet=off -timeout 20m $(WORDS)
	@$(STAGE) 'test 386 on Redis' env GOARCH=386 CGO_ENABLED=0 go test -vet=off -run 'TestOneServerPassesTheSuiteAndItsVectors$$' ./redislimit

fuzz: ## run every fuzz target for FUZZTIME (1s)
	@$(STAGE) fuzz scripts/fuzz.sh $(FUZZTIME)

readme: ## run the commands of README.md in a fresh clone
	@$(STAGE) readme scripts/readme.sh

deploy: ## render the chart with Helm, and decode the files of deploy into the types of Kubernetes and Compose
	@$(STAGE) 'test deploy' env GOWORK=off go test -C deploy/deploytest

envoy-gateway: deps ## run Envoy Gateway itself, which pushes to Weir, on a loopback interface of its own, and edit a policy: 239 MB, minutes; Linux
	scripts/envoy-gateway.sh

envoy-gateway-rules: deps ## compare with envoyproxy/ratelimit on the rules of Envoy Gateway's own tests, pushed to both: 300 MB of modules, minutes
	scripts/envoy-gateway-rules.sh

more: deps ## test what CI has no time for, an hour: layers, every driver, reloads, crashes, failovers, clients of other projects
	@for n in 1 5; do $(STAGE) "below $$n layers" env WEIR_LAYERS=$$n go test -p 4 $(LAYERED) || exit; done
	@$(STAGE) sql env WEIR_SQL_FAILOVER=1 go test -timeout 20m ./cmd/weir/internal/sqlengine/drivertest
	@$(STAGE) reloads env WEIR_TEST_RELOADS=10000 go test -race -timeout 20m -run 'TestReloadsUnderLoadLoseNoDecision$$' ./cmd/weir/internal/serve
	@$(STAGE) outages env WEIR_REDIS_SHOW=1m WEIR_OUTAGE_SHOW=10s WEIR_SQL_SHOW=1m go test -count=1 -timeout 20m -run 'TestTwoDaemons' ./cmd/weir/internal/serve
	@$(STAGE) replicas env WEIR_REPLICAS_SHOW=10s go test -count=1 -timeout 20m -run 'TestReplicasAreReplacedUnderLoad' ./cmd/weir/internal/serve
	@$(STAGE) clients env WEIR_ENVOY_CLIENTS=1 go test -count=1 -timeout 20m -run TestOtherProgramsAreAnswered ./cmd/weir/internal/rls ./cmd/weir/internal/kuadrant
	@$(STAGE) release env WEIR_RELEASE=1 go test -count=1 -timeout 30m ./internal/release
	@$(STAGE) pace scripts/pace.sh

random: deps ## run what draws at random TIMES (10) times as long, with fresh seeds; a failure names its WEIR_SEED=
	@$(STAGE) random env WEIR_SEED=$${WEIR_SEED:-fresh} WEIR_TIMES=$(TIMES) go test -count=1 -vet=off -timeout 3h $(FLAGS) $(RANDOM_TESTS)

redis-suite: ## run the suite on the server at URL=redis://…; it writes and deletes only keys that begin with weirtest-
	@test -n "$(URL)" || { echo 'usage: make redis-suite URL=redis://127.0.0.1:6379'; exit 2; }
	@WEIR_REDIS_URL='$(URL)' go test -count=1 -v -timeout 30m -run 'TestOneServerPassesTheSuiteAndItsVectors$$' ./redislimit

docs: ## write docs/why/choosing.md, docs/reference/flags.md and the pictures from the program
	go test -count=1 -run 'TestThePicturesOfTheReport' ./cmd/weir/internal/page/browsertest -write-report
	go test -count=1 -run 'TestTheTourShowsWhatTheProgramSays|TestThePageOfFlags|TestThePicturesOfTheAlgorithms' ./cmd/weir -write-docs
	go test -count=1 -run 'TestThePicturesOfTheLivePage|TestThePictureOfThePlayground' ./cmd/weir/internal/page/browsertest -write-docs

playground: ## build the page "Try it" in bin/playground, which weir playground serves
	scripts/playground.sh bin/playground

site: ## make a static site of docs/ and of the playground in site/.dist and check it in Chromium; needs node, npm and chromium
	cd site && npm ci --no-audit --no-fund && npm run build && ../scripts/playground.sh .dist/playground && npm run check

campaign: ## break Redis servers at random under load, and check every bound; FLAGS='-duration 1h -o bench/CAMPAIGN.md'
	go run ./bench/campaign $(FLAGS)

hostile: ## attack a daemon that serves honest clients; FLAGS='-duration 30m'
	go run ./bench/hostile $(FLAGS)

soak: ## run the memory engine with random rules, keys, clock steps and snapshots; FLAGS='-duration 10m'
	go run ./bench/soak $(FLAGS)

apidiff: ## compare the API with the last tag; fails if a change breaks programs of users
	@scripts/apidiff.sh $(APIDIFF)

tag: ## tag VERSION=v0.1.0 of every module that users import; pushes nothing
	@scripts/tag.sh '$(VERSION)'

release-dry: ## run the release of VERSION=v0.1.0 into the new folder FOLDER=…, and install from it; tags nothing here
	@PLATFORMS='$(PLATFORMS)' scripts/release-dry.sh '$(VERSION)' '$(FOLDER)'

dist: ## build what a version ships, from the last commit, into dist: programs, packages, an image; 15 minutes the first time
	@PLATFORMS='$(PLATFORMS)' scripts/dist.sh $(NFPM) $(CYCLONEDX) $(CRANE)

sign: ## sign dist/SHA256SUMS with the key in SIGNING_KEY, if there is one
	@scripts/sign.sh

image: ## build the image of the last commit for this machine, an OCI archive in dist; needs no Docker, and takes minutes
	@PLATFORMS=linux/$$(go env GOARCH) scripts/dist.sh --image $(CRANE)

# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' Makefile)
