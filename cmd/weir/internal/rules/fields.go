package rules

import (
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// field is one field of a mapping: how it is called, what it means, how its value looks, and how it is read. The
// reader and the JSON Schema are made of the same tables, so they cannot differ.
type field[T any] struct {
	name, about string
	shape       shape
	read        func(n node, into *T)
}

// fields are all fields of a mapping.
type fields[T any] []field[T]

// read reads a mapping. It returns the given fields by name.
func (fs fields[T]) read(n node, what string, into *T) (given map[string]node) {
	given = map[string]node{}
	members, _ := n.members("the fields of " + what)
	for _, m := range members {
		known := false
		for i := range fs {
			if known = fs[i].name == m.name; known {
				given[m.name] = m.node
				fs[i].read(m.node, into)
				break
			}
		}
		if !known {
			m.key.failMeant(nearest(m.name, fs.names()), "%s is not a field of %s, want %s", plain.Quoted(m.name), what, strings.Join(fs.names(), ", "))
		}
	}
	return given
}

func (fs fields[T]) names() (names []string) {
	for i := range fs {
		names = append(names, fs[i].name)
	}
	return names
}

// The tables are filled in by init, because their readers use them.
var (
	fileFields     fields[loader]
	listenFields   fields[loader]
	tlsFields      fields[loader]
	ruleFields     fields[draft]
	planFields     fields[draft]
	costFields     fields[draft]
	chargeFields   fields[draft]
	estimateFields fields[draft]
)

func init() {
	fileFields = fields[loader]{
		{"listen", "The addresses of the daemon.", object(&listenFields), func(n node, l *loader) {
			if l.once("listen", n) {
				listenFields.read(n, "listen", l)
			}
		}},
		{"engine", "Where states are kept: memory, or the URL of a Redis server.", texts, func(n node, l *loader) {
			if l.once("engine", n) {
				l.config.Engine["engine"], _ = n.text("memory or a URL like redis://127.0.0.1:6379 or postgres://HOST/DB")
			}
		}},
		{"peers", "The number of daemons that share the engine, or auto to count them there.", either(words("auto"), wholes(1, mostPeers)), func(n node, l *loader) {
			if !l.once("peers", n) {
				return
			}
			if text, ok := n.scalar(); ok && text == "auto" {
				l.config.Engine["peers"] = text
			} else {
				l.config.Engine["peers"] = strconv.FormatInt(n.whole(1, mostPeers), 10)
			}
		}},
		{"deadline", "How long a decision of the engine may take.", texts, func(n node, l *loader) {
			if l.once("deadline", n) {
				l.readDeadline(n)
			}
		}},
		{"default", "The answer to a request that no rule matches.", words("allow", "deny"), func(n node, l *loader) {
			if l.once("default", n) {
				l.config.Deny = n.oneOf("allow", "deny") == "deny"
			}
		}},
		{"attributes", "The names of further attributes, which callers send.", listOf(texts), func(n node, l *loader) { l.declare(n) }},
		{"rules", "The rules.", itemsOf(object(&ruleFields, "name")), func(n node, l *loader) { l.addRules(n) }},
	}
	listenFields = fields[loader]{
		listens("http", "The address of the HTTP API."),
		listens("grpc", "The address of Envoy's rate limit service."),
		listens("resp", "The address for Redis clients."),
		listens("metrics", "The address of /metrics."),
		listens("admin", "The address of the admin port."),
		file("tokens", "tokens", "The file of tokens and names in certificates that callers show."),
		{"tls", "The certificates.", object(&tlsFields), func(n node, l *loader) { tlsFields.read(n, "tls", l) }},
	}
	tlsFields = fields[loader]{
		file("cert", "tls-cert", "The file of the daemon's certificate."),
		file("key", "tls-key", "The file of the key of cert."),
		file("client_ca", "tls-client-ca", "The file of the certificate that signs the callers' certificates."),
	}
	ruleFields = fields[draft]{
		{"name", "The name of the rule. State belongs to it.", namesOf(maxName), func(n node, d *draft) { d.Name = ruleName(n) }},
		{"match", "Which requests the rule decides: patterns, any, or otherwise for those that rules with its name in otherwise refuse.", matches, func(n node, d *draft) { d.readMatch(n) }},
		{"except", "Which of those requests the rule does not decide: those that fit any of these patterns.", mapOf(listOf(texts)), func(n node, d *draft) { d.except = d.conditions("except", n) }},
		{"limit", "The limit of each key, or a list of limits.", listOf(texts), func(n node, d *draft) { d.limitNode = n }},
		{"deny", "Refuse every request that matches.", flags, func(n node, d *draft) { d.Deny = n.flag() }},
		{"unlimited", "Exempt every request that matches from all other limits.", flags, func(n node, d *draft) { d.Unlimited = n.flag() }},
		{"key", "The attributes whose values share one budget.", listOf(texts), func(n node, d *draft) { d.readKey(n) }},
		{"hashed", "Give the engine the hash of the key, and not its values.", flags, func(n node, d *draft) { d.hashed = n.flag() }},
		{"missing", "What happens if an attribute of the key is missing.", words("share", "refuse", "skip"), func(n node, d *draft) {
			d.missing = Missing(n.oneOf("share", "refuse", "skip"))
		}},
		{"budget", "The rule whose budget this one counts in.", namesOf(maxName), func(n node, d *draft) { d.Budget = ruleName(n) }},
		{"otherwise", "The rule that is asked in place of this one where this one refuses. It has match: otherwise.", namesOf(maxName), func(n node, d *draft) { d.Otherwise = ruleName(n) }},
		{"plans", "Limits by the value of an attribute.", object(&planFields, "by", "limits"), func(n node, d *draft) { d.readPlans(n) }},
		{"keys", "Limits of single keys.", mapOf(listOf(texts)), func(n node, d *draft) { d.keyNode = n }},
		{"cost", "The units of a request.", either(wholes(0, weir.MaxCount), object(&costFields, "from")), func(n node, d *draft) { d.readCost(n) }},
		{"charge", "When the cost of a request is known: before the work, or after it.", either(words("before", "after"), object(&chargeFields, "when")), func(n node, d *draft) { d.readCharge(n) }},
		{"estimate", "The units that a reservation holds: a percentile of the last costs of its key.", either(texts, object(&estimateFields, "quantile")), func(n node, d *draft) { d.readEstimate(n) }},
		{"on_failure", "The answer while the engine fails.", words("deny", "allow", "local"), func(n node, d *draft) {
			d.HasPolicy = d.OnFailure.UnmarshalText([]byte(n.oneOf("deny", "allow", "local"))) == nil
		}},
		{"shadow", "Decide and count, and never refuse.", flags, func(n node, d *draft) { d.Shadow = n.flag() }},
		{"candidate", "Another limit, decided and counted beside the limit in force.", listOf(texts), func(n node, d *draft) { d.candidateNode = n }},
		{"message", "A text for people whose request the rule refuses.", texts, func(n node, d *draft) { d.readMessage(n) }},
		{"replaces", "The limit of a control plane that the rule stands in place of, by its name in weir ctl rules. Files of --overlay have it.", texts, func(n node, d *draft) { d.readReplaces(n) }},
	}
	planFields = fields[draft]{
		{"by", "The attribute that names the plan.", texts, func(n node, d *draft) { d.planBy, _ = d.loader.slot(n) }},
		{"limits", "The limits, by the value of the attribute.", mapOf(listOf(texts)), func(n node, d *draft) { d.planNode = n }},
	}
	chargeFields = fields[draft]{
		{"when", "Before the work, or after it.", words("before", "after"), func(n node, d *draft) { d.After = n.oneOf("before", "after") == "after" }},
		{"most", "The most units that one cost told after the work counts.", wholes(1, weir.MaxCount), func(n node, d *draft) { d.Most = n.whole(1, weir.MaxCount) }},
	}
	estimateFields = fields[draft]{
		{"quantile", "p1 to p99.", texts, func(n node, d *draft) { d.readQuantile(n) }},
		{"min", "The least units to hold.", wholes(1, weir.MaxCount), func(n node, d *draft) { d.Estimate.Min = n.whole(1, weir.MaxCount) }},
		{"max", "The most units to hold, also until 20 costs are known.", wholes(1, weir.MaxCount), func(n node, d *draft) { d.Estimate.Max = n.whole(1, weir.MaxCount) }},
	}
	costFields = fields[draft]{
		{"from", "The attribute that holds the cost.", texts, func(n node, d *draft) { d.readCostFrom(n) }},
		{"default", "The cost of requests without the attribute.", wholes(0, weir.MaxCount), func(n node, d *draft) { d.cost = n.whole(0, weir.MaxCount) }},
	}
}

// listens is the field of a port's address, for the flag of the same name.
func listens(name, meaning string) field[loader] {
	return field[loader]{name, meaning + " HOST:PORT or unix:PATH.", texts, func(n node, l *loader) {
		text, ok := n.text("an address like 127.0.0.1:8080 or unix:weir.sock")
		if ok && !isHostPort(text) && !strings.HasPrefix(text, "unix:") {
			n.fail("%s is no address, want HOST:PORT, like 127.0.0.1:8080, or unix:PATH", plain.Quoted(text))
		}
		l.config.Listen[name] = text
	}}
}

// isHostPort reports whether net.SplitHostPort splits the text. It stands here because package net makes the playground larger.
func isHostPort(text string) bool {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, port, ok := strings.Cut(inner, "]:")
		return ok && !strings.ContainsAny(host, "[]") && !strings.ContainsAny(port, "[]:")
	}
	return strings.Count(text, ":") == 1 && !strings.ContainsAny(text, "[]")
}

// file is the field of a file's name, for a flag.
func file(name, flag, meaning string) field[loader] {
	return field[loader]{name, meaning, texts, func(n node, l *loader) { l.config.Listen[flag], _ = n.text("the name of a file") }}
}
