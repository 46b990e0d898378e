package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/resp"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/layer"
)

// corpusDaemon is a daemon of the corpus: its fronts, on an engine that a conversation can break.
type corpusDaemon struct {
	beside  weir.Engine // of shadows and candidates
	http    http.Handler
	auth    *auth.Port
	envoy   *rls.Server // nil without rules in files
	redis   net.Conn
	in      *bufio.Reader
	state   atomic.Value // of the engine: "decides", "fails" or "hangs"
	callers map[string]string
	counts  func() string
	stop    func()

	mu    sync.Mutex
	notes []string
}

// Write notes a line of the log.
func (d *corpusDaemon) Write(line []byte) (int, error) {
	d.note("! %s", strings.TrimSpace(string(line)))
	return len(line), nil
}

func (d *corpusDaemon) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, fmt.Sprintf(format, args...)+"\n")
}

// noted returns what was noted since, in an order of its own, because some of it is decided beside the rest.
func (d *corpusDaemon) noted() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	notes := d.notes
	d.notes = nil
	slices.Sort(notes)
	return strings.Join(notes, "")
}

func (d *corpusDaemon) asked(requests []weir.Request, allowed bool) {
	for _, q := range requests {
		d.note("* recorded %s %q %d %v", q.Rule.Name(), q.Key, q.Cost, allowed)
	}
}

// breakable returns the engine with the failures of the conversation.
func (d *corpusDaemon) breakable(e weir.Engine) weir.Engine {
	return weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		switch d.state.Load() {
		case "fails":
			return weir.Answer{}, errors.New("the server is away")
		case "hangs":
			if call.Within > 0 {
				within, cancel := context.WithTimeout(ctx, call.Within)
				defer cancel()
				ctx = within
			}
			select {
			case <-ctx.Done():
				return weir.Answer{}, ctx.Err()
			case <-time.After(time.Minute):
			}
		}
		return next(ctx, call)
	})
}

// distant hides that an engine is in memory.
type distant struct{ weir.Engine }

func newCorpusDaemon(t *testing.T, files []txtar.File) *corpusDaemon {
	d := &corpusDaemon{callers: map[string]string{}}
	d.state.Store("decides")
	log := slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	o := corpusFiles{t: t, d: d}
	for _, f := range files {
		o.read(f.Name, string(f.Data))
	}
	named := o.named()
	seen := metrics.New(memoryEngine, slog.New(slog.DiscardHandler))
	overrides, err := override.OpenFile("", log)
	must(t, err)
	engine := d.breakable(weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().UnixNano() }}))
	if o.guard {
		policies := map[string]layer.Policy{}
		if o.config != nil {
			policies = o.config.Policies()
		}
		guard, err := layer.Guard(distant{engine}, layer.GuardOptions{Rules: policies, Peers: 2, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		engine = guard
		t.Cleanup(guard.Close)
	}
	d.beside, err = seen.ObserveBeside(overrides.Around(engine))
	must(t, err)
	engine, err = seen.Observe(overrides.Around(engine))
	must(t, err)
	d.auth = &auth.Port{Keys: o.keys, Hosts: func(host string) bool { return host == "localhost" }}
	if o.keys == nil {
		d.auth.Open = auth.Anyone("anyone", auth.All)
	}
	d.assemble(t, &o, engine, named, seen, log)
	return d
}

// assemble puts the fronts together, as answer does.
func (d *corpusDaemon) assemble(t *testing.T, o *corpusFiles, engine weir.Engine, named []*weir.Rule, seen *metrics.Metrics, log *slog.Logger) {
	compared := func(name string, inForce, beside weir.Decision, err error) {
		d.note("* beside %s: in force %v, beside %v, error %v", name, inForce.Allowed, beside.Allowed, err)
		seen.Compared(name, inForce, beside, err)
	}
	judged := func(ctx context.Context, rule string, allowed bool, reason rules.Reason) {
		d.note("* judged %q %v %s", rule, allowed, reason)
		seen.Judged(ctx, rule, allowed, reason)
	}
	check, err := o.gateway.options(log, o.config != nil)
	must(t, err)
	decides := decide.New(decide.Options{Engine: engine, Beside: d.beside, Rules: named, Config: o.config, Log: log, Patience: o.patience,
		Recorded: d.asked, Judged: judged, Compared: compared, Secret: func(context.Context) ([]byte, error) { return []byte("secret"), nil }, Wait: decide.WaitOptions{Callers: o.waiting}})
	var also map[string]http.Handler
	if o.config != nil {
		d.envoy = rls.New(rls.Options{Desk: decides, Headers: headerFormats[o.headers], Log: log, Auth: d.auth, Stats: &o.compat.stats})
		also = map[string]http.Handler{"/json": d.envoy}
	}
	a := api.New(api.Options{Desk: decides, Serves: auth.Serves, Who: auth.Of, Keys: seen.Top, Log: log, Check: check, Dynamic: o.dynamic, Also: also})
	seen.Watch(metrics.Sources{Engine: engine, Desk: decides, Unready: a.Unready})
	d.http, d.stop = a, a.Stopping
	d.counts = func() string { return counted(seen.Handler()) }
	d.serveRedis(t, resp.New(resp.Options{Desk: decides, Clients: 10, Log: log, Auth: d.auth}))
}

// counted returns the counts of decisions and waits.
func counted(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var b strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		for _, prefix := range []string{"weir_decisions_total{", "weir_judged", "weir_refus", "weir_beside", "weir_waits"} {
			if strings.HasPrefix(line, prefix) && !strings.HasSuffix(line, " 0\n") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// serveRedis connects a client.
func (d *corpusDaemon) serveRedis(t *testing.T, s *resp.Server) {
	on := newMemoryListener()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(on) }()
	conn, err := on.dial(t.Context(), "", "")
	must(t, err)
	d.redis, d.in = conn, bufio.NewReader(conn)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = s.Shutdown(context.Background())
		<-ended
	})
}

// askResp sends a pipeline of commands, and returns their answers.
func (d *corpusDaemon) askResp(text string) string {
	var b strings.Builder
	commands := strings.Split(text, " ; ")
	for _, command := range commands {
		var words []string
		for command = strings.TrimSpace(command); command != ""; command = strings.TrimSpace(command) {
			word, _, _ := strings.Cut(command, " ")
			rest := command[len(word):]
			if quoted, err := strconv.QuotedPrefix(command); err == nil {
				rest = command[len(quoted):]
				word, _ = strconv.Unquote(quoted)
			}
			if token, ok := strings.CutPrefix(word, "@"); ok {
				word = d.callers[token]
			}
			words, command = append(words, word), rest
		}
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	go func() { _, _ = io.WriteString(d.redis, b.String()) }()
	answers := ""
	for range commands {
		answers += d.reply() + "\n"
	}
	return answers
}

// reply reads a reply, and returns it in one line.
func (d *corpusDaemon) reply() string {
	line, err := d.in.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		text := make([]byte, n+2)
		_, _ = io.ReadFull(d.in, text)
		return strconv.Quote(string(text[:n]))
	case '*', '%':
		if line[0] == '%' {
			n *= 2
		}
		var parts []string
		for range n {
			parts = append(parts, d.reply())
		}
		return line[:1] + "[" + strings.Join(parts, " ") + "]"
	}
	return line
}

// askEnvoy asks the rate limit service.
func (d *corpusDaemon) askEnvoy(text string) string {
	head, body, _ := strings.Cut(text, "| ")
	ctx := context.Background()
	if who, ok := strings.CutPrefix(strings.TrimSpace(head), "as="); ok {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Bearer "+d.callers[who]))
	}
	var r ratelimit.RateLimitRequest
	if err := protojson.Unmarshal([]byte(body), &r); err != nil {
		return "not JSON: " + err.Error() + "\n"
	}
	answer, err := d.envoy.ShouldRateLimit(ctx, &r)
	if err != nil {
		return status.Code(err).String() + ": " + status.Convert(err).Message() + "\n"
	}
	written, err := protojson.Marshal(answer)
	if err != nil {
		return err.Error() + "\n"
	}
	return compact(written) + "\n"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// corpusFiles are the files of a daemon of the corpus.
type corpusFiles struct {
	t        *testing.T
	d        *corpusDaemon
	texts    []string // of --rule
	config   *rules.Config
	keys     *auth.Keys
	gateway  gatewayOptions
	compat   compatOptions
	headers  string
	dynamic  bool
	guard    bool
	patience time.Duration
	waiting  int
}

// read takes over a file: "flags" comes first.
func (o *corpusFiles) read(name, text string) {
	switch name {
	case "flags":
		o.gateway.status, o.headers = http.StatusTooManyRequests, "none"
		for _, word := range strings.Fields(text) {
			o.set(word)
		}
	case "rules":
		o.texts = strings.Split(strings.TrimSpace(text), "\n")
	case "tokens":
		o.readTokens(text)
	default:
		parse := rules.Parse
		if o.compat.on() {
			parse = envoyproxy.Parser(o.compat.settings, &o.compat.stats)
		}
		config, err := parse(rules.Options{}, rules.File{Name: name, Content: []byte(text)})
		must(o.t, err)
		o.config = config
	}
}

// set sets a flag of the daemon.
func (o *corpusFiles) set(word string) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "dynamic":
		o.dynamic = true
	case "guard":
		o.guard = true
	case "compat":
		o.compat.as = compatEnvoy
		o.compat.settings.NearRatio = 0.8
	case "headers":
		o.headers = value
	case "patience":
		o.patience, _ = time.ParseDuration(value)
	case "waiting":
		o.waiting, _ = strconv.Atoi(value)
	case "check-key":
		o.gateway.key = value
	case "check-rule":
		o.gateway.rule = value
	case "check-cost":
		o.gateway.cost = value
	case "check-trust":
		o.gateway.trust = append(o.gateway.trust, value)
	default:
		o.t.Fatalf("no flag %q", name)
	}
}

// readTokens makes a token for each line of a name and scopes.
func (o *corpusFiles) readTokens(text string) {
	var lines []string
	for line := range strings.Lines(text) {
		name, scopes, _ := strings.Cut(strings.TrimSpace(line), " ")
		token, form := auth.NewToken()
		o.d.callers[name] = token
		lines = append(lines, name+" "+form+" "+scopes)
	}
	path := filepath.Join(o.t.TempDir(), "tokens")
	writeFile(o.t, path, strings.Join(lines, "\n"))
	var err error
	o.keys, err = auth.Open(auth.Files{Tokens: path})
	must(o.t, err)
}

// named returns the rules that callers may name.
func (o *corpusFiles) named() []*weir.Rule {
	if o.config != nil {
		return o.config.Named()
	}
	named, err := parseRules(o.texts)
	must(o.t, err)
	return named
}
