package serve

const help = `Serve decides over HTTP. It keeps the state of all keys in memory or, with
--engine, in Redis or an SQL database, which several daemons can share.

Without --engine it needs no file and no server. Without --rule it has one rule,
  ` + defaultRule + `
and otherwise only the given rules. A request that names no rule uses the rule
called default. GET /openapi.json describes requests and answers. Connections
beyond --max-connections get 503 or are closed.

POST /v1/wait answers as soon as the limit admits the caller, or when the patience
given in the request ends. /v1/reserve holds slots, and units whose true
cost is known later, under a token for /v1/settle and /v1/renew. A slot expires
with its lease: after 1m, unless the rule has a lease of its own, like:
concurrency 20 lease 30s

On a loopback address, serve answers only requests whose Host is localhost, a
loopback address or a --host, because a web page can make its own name resolve to
this machine.

If other machines can connect, callers need a token of --tokens or a certificate of
--tls-client-ca, unless --insecure is given. docs/howto/machines.md describes the
files and scopes. --tls-cert and --tls-key encrypt every TCP port.

SIGINT or SIGTERM stops it: /readyz turns 503, waiting callers get 503, and serve
answers requests that have begun to arrive. A second signal stops it at once. SIGHUP does not stop it.

Gateways such as nginx, Caddy and Traefik ask /v1/check, which answers by status.
The --check flags configure it; docs/howto/gateways.md has whole configurations.

With --resp, serve also answers Redis clients: CL.THROTTLE as redis-cell does, and
WEIR.TAKE for a rule by name. docs/howto/redis-clients.md lists the commands.

With --engine, serve waits up to --engine-wait at the start for a server that is
absent or refuses writes. With a policy of --on-failure it then starts without one.
--deadline bounds each decision of the server. While it is away, --on-failure says how to
answer: deny (503), allow, or local, by a share of the limits for each of --peers.
/readyz stays 200 meanwhile, and /readyz?engine=1 is 503.
docs/howto/redis.md and docs/howto/sql.md describe the URLs.

With --dynamic, a request may bring the limit of its rule: {"rule":"tenant",
"key":"acme","limit":"5/m"}. Requests can name up to 1,000 rules this way.

With --grpc, serve answers Envoy's rate limit service by the rules of --config, and
the same calls in JSON on /json. On the same port it answers the service of
Kuadrant's gateways, which hold tokens before a call and count them after it:
docs/howto/kuadrant.md. With --compat envoyproxy, it reads the files and
the environment of envoyproxy/ratelimit: docs/howto/envoy.md.

With --record, serve writes each take and check to a file that weir replay reads.

With --state, the state outlives the daemon. Serve loads it from the file at the
start, if the file exists, and continues as if it had been running meanwhile. It
saves the state at the stop, every --state-every, and on SIGUSR1. A daemon that is
killed loses the decisions after the last save. It refuses a damaged file, unless
--state-partial is given: it then starts with the readable part.

With --config, the rules are in files, and requests may give attributes for them to
match: docs/reference/rules.md. Serve reads the files again when they change, and on SIGHUP.
If they have errors, it logs those and keeps the rules in force.

Sockets from systemd replace the addresses of the flags that they are named after,
so a restart refuses no connection: docs/howto/operate.md#under-systemd.

Each flag can come from the environment instead: WEIR_MAX_KEYS stands for
--max-keys. A variable holds the values of a repeated flag one a line.
Flags override variables, and both override the files of --config.`

const examples = `  weir serve
  weir serve --http 127.0.0.1:9000
  weir serve --rule 'login=token bucket 5/m burst 5' --rule 'default=sliding window 1000/h'
  weir serve --rule 'default=60/m'
  weir serve --rule 'mail=token bucket 1/s burst 10 and fixed window 500/1d'
  weir serve --http :8080 --insecure --drain 5s
  weir serve --http :8443 --tokens tokens --tls-cert weir.pem --tls-key weir.key
  weir serve --rule 'jobs=concurrency 5 lease 30s' --max-wait 5m
  weir serve --host limits.example.org
  weir serve --check-key X-Forwarded-For --check-trust 127.0.0.1 --check-status 403
  weir serve --state weir.state --state-every 10s
  weir serve --config weir.yaml
  weir serve --config weir.yaml --grpc 127.0.0.1:8081
  weir serve --record record.jsonl --record-share 10% --record-hash
  weir serve --resp 127.0.0.1:6380 --rule 'login=5/m'
  weir serve --engine redis://127.0.0.1:6379
  weir serve --engine sqlite:weir.db --deadline 100ms
  weir serve --engine 'rediss://weir@redis.example?password_file=redis.password&prefix=shop'`
