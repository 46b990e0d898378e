#!/usr/bin/env bash
# Follows README.md in a fresh clone: runs the complete program, starts the
# daemon, runs the loop of curl lines and looks at the busiest keys, waits for the
# retry_after of a refusal, stops the daemon, replays the log, paces lines, opens
# the playground, asks a build for its commit, and reads the documentation.
# None of this may change a file of the clone. The script reads the
# program and the commands from README.md, so it tests exactly those.
#
# A clone holds only committed files. Without a git checkout, the script copies
# the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requests=25
burst=20 # of the default rule: token bucket 10/s burst 20
rate=10
serve_command='go run ./cmd/weir serve'

work=$(mktemp -d)
mkdir "$work/run"
export TMPDIR=$work/run XDG_RUNTIME_DIR=$work/run # ctl finds no other daemon of this user
server=
program=
trap cleanup EXIT

cleanup() {
	if [ -n "$server" ]; then
		pkill -KILL -P "$server" 2>/dev/null || true
		kill -KILL "$server" 2>/dev/null || true
	fi
	if [ -n "$program" ]; then
		kill -KILL "$program" 2>/dev/null || true
	fi
	rm -rf "$work"
}

fail() {
	echo "readme.sh: $*" >&2
	if [ -n "$server" ]; then
		echo "--- output of the server:" >&2
		cat "$work/serve.log" >&2
	fi
	exit 1
}

now_ms() { date +%s%3N; }

fresh_clone() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git clone --quiet . "$work/weir"
		git diff --quiet HEAD 2>/dev/null || echo "readme.sh: the clone lacks uncommitted changes"
	else
		echo "readme.sh: no git checkout here; using a copy of the tree"
		cp -R . "$work/weir"
	fi
	cd "$work/weir"
}

# free_port prints the README's port of the program, or a free one.
free_port() {
	local port
	for port in 8081 18081 28081 38081; do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
	done
	fail "no free port for the program of README.md"
}

# start_program builds the complete program of README.md in a module of its own,
# with the lines for a clone, and waits until it listens on $port.
start_program() {
	mkdir "$work/program"
	awk '/^package main$/ { inside = 1 } /^```$/ { inside = 0 } inside' README.md >"$work/program/main.go"
	sed -i "s/127.0.0.1:8081/127.0.0.1:$port/" "$work/program/main.go"
	(
		cd "$work/program"
		export GOWORK=off
		go mod init example >/dev/null 2>&1
		grep -E '^go mod (edit|tidy)' "$work/weir/README.md" >lines && [ "$(wc -l <lines)" -eq 2 ] && bash -e lines &&
			go vet . && go build -o server .
	) || fail "the program of README.md does not build"
	"$work/program/server" &
	program=$!
	for _ in $(seq 100); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
		sleep 0.1
	done
	fail "the program of README.md does not listen on port $port"
}

# program_limits_its_client sends 60 requests in one go. The program admits the
# burst, and its first refusal has status 429 and a retry time.
program_limits_its_client() {
	local port answers
	port=$(free_port)
	start_program
	answers=$(curl -s -o /dev/null -w '%{http_code} %header{retry-after}\n' "http://127.0.0.1:$port/[1-60]") || fail "curl of the program failed"
	[ "$(head -n 10 <<<"$answers" | grep -c '^200 $')" -eq 10 ] || fail "the program refused within the burst of 10: $answers"
	grep -qx '429 1' <<<"$answers" || fail "the program never answered 429 with Retry-After: 1: $answers"
	kill -TERM "$program"
	wait "$program" 2>/dev/null || true
	program=
	echo "readme.sh: the program admitted its burst and then answered 429"
}

# start_daemon runs the README's command and waits for the curl line that it
# prints. It uses another port only if 8080 is taken.
start_daemon() {
	grep -qxF "$serve_command" README.md || fail "README.md has no line '$serve_command'"
	local command=$serve_command
	if (exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null; then
		echo "readme.sh: port 8080 is taken, so this runs with --http 127.0.0.1:0"
		command+=' --http 127.0.0.1:0'
	fi
	echo "\$ $command"
	$command >"$work/serve.log" 2>&1 &
	server=$!
	for _ in $(seq 1200); do
		curl_line=$(grep -oE 'curl .*' "$work/serve.log" | head -n 1) && return
		kill -0 "$server" 2>/dev/null || fail "the daemon ended before it printed a curl line"
		sleep 0.1
	done
	fail "the daemon printed no curl line within two minutes"
}

# ask runs the printed curl line and leaves the answer in $answer.
ask() { answer=$(bash -c "$curl_line" 2>/dev/null) || fail "failed: $curl_line"; }

allowed() { grep -qE '"allowed": ?true' <<<"$answer"; }

# burst_then_refusals runs the loop of README.md at the daemon's address. It
# checks that the burst passes, and no more than the rate adds to it.
burst_then_refusals() {
	local loop start answers admitted most elapsed
	loop=$(grep -E '^for .* curl ' README.md) || fail "README.md has no loop of curl lines"
	grep -qF "curl ${curl_line#curl }" <<<"${loop//127.0.0.1:8080/$(cut -d / -f 3 <<<"$curl_line")}" ||
		fail "the loop of README.md does not run the line that the daemon prints: $curl_line"
	loop=${loop//127.0.0.1:8080/$(cut -d / -f 3 <<<"$curl_line")}
	echo "\$ $loop"
	start=$(now_ms)
	answers=$(bash -c "$loop" 2>/dev/null) || fail "failed: $loop"
	elapsed=$(($(now_ms) - start))
	[ "$(grep -cE '"allowed": ?(true|false)' <<<"$answers")" -eq "$requests" ] || fail "want $requests answers, got: $answers"
	admitted=$(grep -cE '"allowed": ?true' <<<"$answers")
	most=$((burst + rate * elapsed / 1000 + 1))
	echo "readme.sh: $requests requests in $elapsed ms: $admitted admitted, $((requests - admitted)) refused"
	[ "$admitted" -ge "$burst" ] || fail "$admitted admitted, want the burst of $burst"
	[ "$admitted" -le "$most" ] || fail "$admitted admitted in $elapsed ms, want at most $most"
}

# top_shows_the_key looks at the busiest keys of the daemon.
top_shows_the_key() {
	local command
	command=$(grep -E '^go run \./cmd/weir ctl top$' README.md) || fail "README.md has no line that looks at the busiest keys"
	echo "\$ $command"
	bash -c "$command" | tee "$work/top.txt" || fail "failed: $command"
	grep -q alice "$work/top.txt" || fail "the busiest keys lack alice"
}

# spend_the_rest sends 200 requests in one go and leaves a refusal in $answer.
# Even a busy machine sends them faster than ten units per second refill.
spend_the_rest() {
	local url=${curl_line##* } urls
	urls=$(printf " $url%.0s" $(seq 199))
	answer=$(bash -c "$curl_line$urls" 2>/dev/null | grep -E '"allowed": ?false' | tail -n 1) || fail "200 more requests and no refusal"
}

# retry_is_admitted spends the rest, waits for the retry_after of a refusal, and
# expects the next request to be admitted.
retry_is_admitted() {
	spend_the_rest
	local wait
	wait=$(grep -oE '"retry_after": ?[0-9.]+' <<<"$answer" | grep -oE '[0-9.]+$') || fail "no retry_after in: $answer"
	sleep "$wait"
	ask
	allowed || fail "still refused after retry_after of $wait s: $answer"
	echo "readme.sh: admitted again after retry_after of $wait s"
}

# stop_daemon stops the program with SIGTERM, like a service manager. go run does
# not forward the signal, so the program itself gets it; go run then exits with
# the same status.
stop_daemon() {
	pkill -TERM -P "$server" || fail "the daemon ended before it was stopped"
	local status=0
	wait "$server" || status=$?
	server=
	[ "$status" -eq 0 ] || fail "the daemon ended with $status after SIGTERM, want 0"
	echo "readme.sh: stopped with exit 0"
}

replay_log() {
	local command
	command=$(grep -E '^go run \./cmd/weir replay ' README.md | head -n 1) || fail "README.md has no replay command"
	echo "\$ $command"
	bash -c "$command" | tee "$work/replay.txt" || fail "failed: $command"
	grep -qE '10,?000' "$work/replay.txt" || fail "the report does not say that 10,000 lines were read"
}

pace_lines() {
	local command
	command=$(grep -E '^seq .* go run \./cmd/weir pace ' README.md) || fail "README.md has no pace command"
	echo "\$ $command"
	bash -c "$command" | diff - <(seq 10) || fail "not every line came through: $command"
}

# playground_answers builds the playground, and asks for its page and its program.
playground_answers() {
	local command served address
	command=$(grep -E '^make playground && go run \./cmd/weir playground ' README.md) || fail "README.md has no command for the playground"
	echo "\$ $command"
	${command%% && *} || fail "failed: ${command%% && *}"
	${command##* && } >"$work/serve.log" 2>&1 &
	server=$!
	for _ in $(seq 1200); do
		address=$(grep -oE 'http://[0-9.:]+/' "$work/serve.log") && break
		kill -0 "$server" 2>/dev/null || fail "the playground ended before it named its address"
		sleep 0.1
	done
	served=$(curl -sf "${address:?the playground names no address}") || fail "the playground serves no page"
	grep -q 'Try a rate limit' <<<"$served" && curl -sf -o /dev/null "${address}weir.wasm.gz" || fail "the playground lacks its page or its program"
	pkill -TERM -P "$server" || fail "the playground ended before it was stopped"
	wait "$server" || true
	server=
	echo "readme.sh: the playground answers at $address"
}

# version_names_the_commit builds the program as a person does who has cloned the repository.
version_names_the_commit() {
	git rev-parse --git-dir >/dev/null 2>&1 || return 0 # a copy: see fresh_clone
	make build || fail "make build failed"
	bin/weir version | grep -q "^commit $(git rev-parse HEAD) " || fail "weir version does not name the commit: $(bin/weir version)"
	echo "readme.sh: weir version names the commit"
}

# clone_is_unchanged reads the documentation, which makes Go load every module of
# the workspace. It then checks that no command has changed a file of the clone.
clone_is_unchanged() {
	echo '$ go doc .'
	go doc . >/dev/null || fail "failed: go doc ."
	git rev-parse --git-dir >/dev/null 2>&1 || return 0 # a copy: see fresh_clone
	local changed
	changed=$(git status --porcelain)
	[ -z "$changed" ] || fail "the commands change files of the clone; run 'go doc .' and commit the changes: $changed"
	echo "readme.sh: the clone is unchanged"
}

fresh_clone
program_limits_its_client
start_daemon
burst_then_refusals
top_shows_the_key
retry_is_admitted
stop_daemon
replay_log
pace_lines
playground_answers
version_names_the_commit
clone_is_unchanged
