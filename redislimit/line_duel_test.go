package redislimit

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/linetest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// The script and linetest, which random schedules of pace try, answer every question of a line alike, and send the same
// signals.
func TestTheScriptKeepsLinesLikeTheModel(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "save", "")
	first, n := uint64(time.Now().UnixNano()), uint64(70)
	if text := os.Getenv("WEIR_SEED"); text != "" { // WEIR_SEED=7 WEIR_TIMES=1 repeats one duel
		first, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("WEIR_TIMES"); text != "" {
		n, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("WEIR_SEED=%d WEIR_TIMES=%d", first, n)
	counts := map[string]int{}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			d := newLineDuel(t, server, seed, counts)
			for d.steps < 60 && !t.Failed() {
				d.step()
			}
		})
	}
	t.Logf("%v", counts)
	for _, what := range []string{"granted", "stands", "dry", "signal", "look", "passed", "told", "age", "booked", "refused booking"} {
		if n >= 70 && counts[what] < 20 && !t.Failed() {
			t.Errorf("%d times %q in %d duels: they try too little", counts[what], what, n)
		}
	}
}

// lineDuel is the lines of one server, kept twice. The clock of the bubble is that of both.
type lineDuel struct {
	*testing.T
	seed      uint64
	random    *rand.Rand
	counts    map[string]int
	steps     int
	log       []string
	engine    *Engine
	model     *linetest.Engine
	commands  *redistest.Conn
	signals   *redistest.Conn
	lease     string
	slots     []*weir.Rule
	rates     []*weir.Rule
	processes []*dueller
	held      []*duelCaller
}

// dueller is a process of both sides.
type dueller struct {
	number  int
	model   enginekit.Lines
	mu      sync.Mutex
	heard   []string // signals of the model
	script  *lines
	hears   wire.Hearing
	callers []*duelCaller // oldest first
	bookers []*duelCaller
}

type duelCaller struct {
	process  *dueller
	requests []weir.Request
	lease    uint64
	since    time.Time
	stays    bool
	stands   []int // requests
}

// Send is the client of the engine.
func (d *lineDuel) Send(_ context.Context, command ...string) (string, error) {
	reply, err := d.commands.Ask(command...)
	text, _ := reply.(string)
	return text, err
}

func newLineDuel(t *testing.T, server *redistest.Server, seed uint64, counts map[string]int) *lineDuel {
	d := &lineDuel{T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 30)), counts: counts, commands: server.Dial(), signals: server.Dial()}
	prefix := fmt.Sprint("duel", seed)
	engine, err := NewWith(d, Options{Prefix: prefix, Lanes: 1, Clock: func() int64 { return time.Now().UnixNano() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	d.engine = engine
	if _, err := d.signals.Ask("PSUBSCRIBE", prefix+":wake:*"); err != nil {
		t.Fatal(err)
	}
	shared := linetest.NewServer(weir.MemoryOptions{})
	d.model = shared.Connect(linetest.Network{})
	d.lease = []string{"1h", "300ms"}[d.random.IntN(4)/3] // one of 300 ms ends before its caller releases it
	for i := range 1 + d.random.IntN(3) {
		text := fmt.Sprintf("slots%d=concurrency %d lease %s", i, 1+d.random.IntN(6), d.lease)
		if d.random.IntN(4) == 0 { // one rule of both
			text += fmt.Sprintf(" and token bucket 1/%dms burst %d", 10+d.random.IntN(300), 3+d.random.IntN(3))
		}
		d.slots = append(d.slots, mustRule(t, text))
	}
	for i := range d.random.IntN(3) {
		text := []string{"token bucket 1/%dms burst %d", "rate gate 1/%dms", "token bucket 5/%dms burst %d"}[d.random.IntN(3)]
		args := []any{10 + d.random.IntN(300), 1 + d.random.IntN(3)}[:strings.Count(text, "%d")]
		d.rates = append(d.rates, mustRule(t, fmt.Sprintf("rate%d=", i)+fmt.Sprintf(text, args...)))
	}
	for i := range 2 + d.random.IntN(3) {
		p := &dueller{number: i, hears: wire.Hearing(min(d.random.IntN(4), 1))}
		network := linetest.Network{Deaf: func() bool { return p.hears == wire.Deaf }}
		p.model = shared.Connect(network).EnterLines(func(s enginekit.LineSignal) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.heard = append(p.heard, signalText(p.number, s))
		})
		p.script = engine.EnterLines(func(enginekit.LineSignal) {}).(*lines)
		p.script.name = fmt.Sprintf("process%d", i)
		d.processes = append(d.processes, p)
	}
	return d
}

func signalText(process int, s enginekit.LineSignal) string {
	return fmt.Sprintf("process %d token %d: %d units, age %v", process, s.Token, s.Units, s.MinAge)
}

func (d *lineDuel) step() {
	d.steps++
	d.wait()
	p := d.processes[d.random.IntN(len(d.processes))]
	switch n := d.random.IntN(20); {
	case n < 11:
		d.ask(p)
	case n < 16 && len(d.held) > 0:
		d.release()
	case n < 18 && len(d.rates) > 0:
		d.book(p)
	case n >= 18 && len(p.callers) > 0: // one leaves
		i := d.random.IntN(len(p.callers))
		p.callers = slices.Delete(p.callers, i, i+1)
		d.ask(p)
	}
	d.compareSignals()
}

// wait lets some time pass: mostly as long as between two calls, sometimes longer than a grace or the life of an entry.
func (d *lineDuel) wait() {
	most := []time.Duration{time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}[min(d.random.IntN(6), 4)]
	time.Sleep(time.Duration(d.random.Int64N(int64(most/time.Microsecond))+1) * time.Microsecond)
}

// newCaller comes now, or came before and has slept.
func (d *lineDuel) newCaller(p *dueller) *duelCaller {
	c := &duelCaller{process: p, since: time.Now().Add(-time.Duration(d.random.IntN(2)*d.random.IntN(300_000)) * time.Microsecond)}
	for slices.ContainsFunc(p.callers, func(o *duelCaller) bool { return o.since.Equal(c.since) }) {
		c.since = c.since.Add(-time.Microsecond) // the rules leave open which of two goes first
	}
	slots := 1 + d.random.IntN(2)*d.random.IntN(len(d.slots))
	if len(d.rates) > 0 && d.random.IntN(4) == 0 {
		slots = 0
	}
	for _, i := range d.random.Perm(len(d.slots))[:slots] {
		c.requests = append(c.requests, d.slots[i].For("k", 1+d.random.Int64N(min(d.slots[i].Limits()[0].(weir.Concurrency).Slots, 3))))
	}
	if slots == 0 || len(d.rates) > 0 && d.random.IntN(3) == 0 {
		for _, i := range d.random.Perm(len(d.rates))[:1+d.random.IntN(len(d.rates))] {
			c.requests = append(c.requests, d.rates[i].For("k", 1))
		}
	}
	c.lease, c.stays = weir.NewLease(), len(c.requests) > 1 && d.random.IntN(3) == 0
	return c
}

// ask asks for some callers of a process, as the process would, with what the others stand for.
func (d *lineDuel) ask(p *dueller) {
	for range d.random.IntN(3) {
		p.callers = append(p.callers, d.newCaller(p))
	}
	slices.SortStableFunc(p.callers, func(a, b *duelCaller) int { return a.since.Compare(b.since) })
	var asked, rest []*duelCaller
	for _, c := range p.callers {
		if len(asked) < 4 && d.random.IntN(3) > 0 {
			asked = append(asked, c)
		} else {
			rest = append(rest, c)
		}
	}
	ask := &enginekit.LineAsk{}
	for _, c := range asked {
		ask.Callers = append(ask.Callers, enginekit.LineCaller{Requests: c.requests, Since: c.since, Stays: c.stays})
	}
	for i, rule := range d.slots {
		if len(asked) > 0 && d.random.IntN(3) > 0 && !slices.ContainsFunc(asked, func(c *duelCaller) bool { return c.takes(rule) >= 0 }) {
			continue
		}
		ask.Keys = append(ask.Keys, restOf(rest, rule, uint64(100*p.number+i+1)))
	}
	d.askBoth(p, ask, asked)
	if d.lease == "1h" && d.random.IntN(8) == 0 { // the answer was lost
		ask.Repeats = true
		d.wait()
		d.askBoth(p, ask, asked)
	}
	for i, c := range asked {
		answer := &ask.Callers[i]
		c.stands = answer.Stands
		if answer.Decision.Allowed || answer.Err != nil {
			p.callers = slices.DeleteFunc(p.callers, func(o *duelCaller) bool { return o == c })
		}
		if answer.Decision.Allowed {
			d.held = append(d.held, c)
		}
	}
}

// takes returns which request takes slots of a rule, or -1.
func (c *duelCaller) takes(rule *weir.Rule) int {
	return slices.IndexFunc(c.requests, func(r weir.Request) bool { return r.Rule == rule })
}

// restOf describes callers that are not in an ask.
func restOf(rest []*duelCaller, rule *weir.Rule, token uint64) enginekit.LineKey {
	k := enginekit.LineKey{Slots: rule.For("k", 0), Token: token}
	for _, c := range rest {
		i := c.takes(rule)
		switch {
		case i < 0:
		case slices.Contains(c.stands, i):
			if k.Want == 0 {
				k.Since, k.Slots.Cost = c.since, c.requests[i].Cost
			}
			k.Want += c.requests[i].Cost
		case len(c.stands) > 0 && c.stays && k.Keep.Units == 0:
			k.Keep.Lease, k.Keep.Since, k.Keep.Units = c.lease, c.since, c.requests[i].Cost
		}
	}
	return k
}

// askBoth asks both sides, compares their answers and leaves that of the model in ask.
func (d *lineDuel) askBoth(p *dueller, ask *enginekit.LineAsk, asked []*duelCaller) {
	script := &enginekit.LineAsk{Callers: slices.Clone(ask.Callers), Keys: slices.Clone(ask.Keys), Repeats: ask.Repeats}
	for i := range script.Callers {
		script.Callers[i] = enginekit.LineCaller{Requests: asked[i].requests, Lease: asked[i].lease, Since: asked[i].since, Stays: asked[i].stays}
		ask.Callers[i] = script.Callers[i]
	}
	for i := range script.Keys {
		script.Keys[i].LineNews, ask.Keys[i].LineNews = enginekit.LineNews{}, enginekit.LineNews{}
	}
	d.note("process %d asks, repeats %v", p.number, ask.Repeats)
	modelErr, scriptErr := p.model.Ask(d.Context(), ask), p.askScript(d.Context(), script)
	if modelErr != nil || scriptErr != nil {
		d.Fatalf("seed %d: %v, %v", d.seed, modelErr, scriptErr)
	}
	for i := range ask.Callers {
		if slices.ContainsFunc(asked[i].requests, isGate) {
			ask.Callers[i].Next, script.Callers[i].Next = 0, 0 // the engine does not know it of a gate
		}
		d.compare(fmt.Sprintf("caller %s", d.callerText(asked[i])), d.answerText(&ask.Callers[i]), d.answerText(&script.Callers[i]))
	}
	for i := range ask.Keys {
		k := &ask.Keys[i]
		d.countNews(k.LineNews)
		d.compare(fmt.Sprintf("key %s rest %d cost %d since %v keep %d since %v", k.Slots.Rule.Name(), k.Want, k.Slots.Cost, ageText(k.Since), k.Keep.Units, ageText(k.Keep.Since)),
			fmt.Sprintf("%+v", k.LineNews), fmt.Sprintf("%+v", script.Keys[i].LineNews))
	}
}

func isGate(r weir.Request) bool {
	_, is := r.Rule.Limits()[0].(weir.RateGate)
	return is
}

// askScript works like lines.Ask of a process that hears signals, although the client here cannot subscribe.
func (p *dueller) askScript(ctx context.Context, ask *enginekit.LineAsk) error {
	a := &lineAsk{lines: p.script, lane: -1, header: &wire.LineHeader{Process: p.script.name, Hears: p.hears, Grace: grace}}
	for i := range ask.Keys {
		if err := a.tells(&ask.Keys[i]); err != nil {
			return err
		}
	}
	for i := range ask.Callers {
		if err := a.asks(&ask.Callers[i], ask.Repeats); err != nil {
			return err
		}
	}
	return a.send(ctx)
}

// release ends a holding.
func (d *lineDuel) release() {
	i := d.random.IntN(len(d.held))
	c := d.held[i]
	d.held = slices.Delete(d.held, i, i+1)
	var back []weir.Request
	for _, r := range c.requests {
		if slots := r.Rule.Held(); slots != nil {
			r.Rule, r.Cost = slots, -r.Cost
			back = append(back, r)
		}
	}
	if len(back) == 0 {
		return
	}
	d.note("process %d releases %s", c.process.number, d.callerText(c))
	record := weir.Call{Op: weir.OpRecord, Lease: c.lease}
	_, modelErr := doCall(d.Context(), d.model, record, back...)
	_, scriptErr := doCall(d.Context(), d.engine, record, back...)
	if modelErr != nil || scriptErr != nil {
		d.Errorf("seed %d: release: %v, %v", d.seed, modelErr, scriptErr)
	}
}

// book books for some callers.
func (d *lineDuel) book(p *dueller) {
	rule := d.rates[d.random.IntN(len(d.rates))]
	if isGate(rule.For("k", 1)) {
		return // it has a bound of its own for what is booked ahead
	}
	for range d.random.IntN(4) {
		p.bookers = append(p.bookers, &duelCaller{process: p, requests: []weir.Request{rule.For("k", 1)}, since: time.Now().Add(-time.Duration(d.random.IntN(2)*d.random.IntN(300_000)) * time.Microsecond)})
	}
	slices.SortStableFunc(p.bookers, func(a, b *duelCaller) int { return a.since.Compare(b.since) })
	book := &enginekit.LineBook{Horizon: time.Duration(d.random.IntN(250_000)) * time.Microsecond}
	var asked []*duelCaller
	for _, c := range p.bookers {
		if c.requests[0].Rule == rule && len(asked) < 4 {
			asked = append(asked, c)
			book.Callers = append(book.Callers, enginekit.LineCaller{Requests: c.requests, Since: c.since})
		}
	}
	if len(asked) == 0 {
		return
	}
	script := &enginekit.LineBook{Horizon: book.Horizon, Callers: slices.Clone(book.Callers)}
	d.note("process %d books for %d", p.number, len(asked))
	modelErr, scriptErr := p.model.Book(d.Context(), book), p.script.Book(d.Context(), script)
	if modelErr != nil || scriptErr != nil {
		d.Fatalf("seed %d: %v, %v", d.seed, modelErr, scriptErr)
	}
	d.compare("booking retry", book.Retry.String(), script.Retry.String())
	refused := false
	for i, c := range asked {
		if refused { // it is not decided
			if book.Callers[i].Decision.Allowed || script.Callers[i].Decision.Allowed {
				d.Errorf("seed %d: a caller was booked behind one that was refused", d.seed)
			}
			continue
		}
		refused = !book.Callers[i].Decision.Allowed
		d.compare("booking "+d.callerText(c), d.bookedText(&book.Callers[i]), d.bookedText(&script.Callers[i]))
		if book.Callers[i].Decision.Allowed {
			p.bookers = slices.DeleteFunc(p.bookers, func(o *duelCaller) bool { return o == c })
		}
	}
}

func (d *lineDuel) compareSignals() {
	synctest.Wait()
	var model, script []string
	for _, p := range d.processes {
		p.mu.Lock()
		model, p.heard = append(model, p.heard...), nil
		p.mu.Unlock()
	}
	if _, err := d.commands.Ask("PUBLISH", d.engine.options.Prefix+":wake:end", ""); err != nil {
		d.Fatal(err)
	}
	for {
		reply, err := d.signals.Reply()
		if err != nil {
			d.Fatal(err)
		}
		message := reply.([]any)
		channel, text := message[2].(string), message[3].(string)
		number, is := strings.CutPrefix(channel, d.engine.options.Prefix+":wake:process")
		if !is {
			break
		}
		process, _ := strconv.Atoi(number)
		script = append(script, signalText(process, enginekit.LineSignal{Token: binary.LittleEndian.Uint64([]byte(text)), Units: wire.UnitsOf(doubleAt(text, 8)), MinAge: wire.WaitOf(doubleAt(text, 16))}))
	}
	slices.Sort(model)
	slices.Sort(script)
	d.counts["signal"] += len(model)
	d.compare("signals", strings.Join(model, "; "), strings.Join(script, "; "))
}

func (d *lineDuel) note(format string, values ...any) {
	d.log = append(d.log, fmt.Sprintf("%v ", time.Now().Format("05.000000"))+fmt.Sprintf(format, values...))
}

func (d *lineDuel) compare(what, model, script string) {
	d.note("%s: %s", what, model)
	if model != script {
		d.Errorf("seed %d, step %d: %s:\nmodel  %s\nscript %s\nbefore:\n%s", d.seed, d.steps, what, model, script, strings.Join(d.log[max(len(d.log)-60, 0):], "\n"))
	}
}

func ageText(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return since.Format("05.000000")
}

func (d *lineDuel) callerText(c *duelCaller) string {
	var text []string
	for _, r := range c.requests {
		text = append(text, fmt.Sprintf("%s*%d", r.Rule.Name(), r.Cost))
	}
	return fmt.Sprintf("%v since %s stays %v", text, ageText(c.since), c.stays)
}

func (d *lineDuel) answerText(c *enginekit.LineCaller) string {
	switch {
	case c.Err != nil:
		return c.Err.Error()
	case c.Decision.Allowed:
		d.counts["granted"]++
		return fmt.Sprintf("granted, next %v", c.Next)
	case len(c.Stands) > 0:
		d.counts["stands"]++
		slices.Sort(c.Stands)
		return fmt.Sprintf("stands %v", c.Stands)
	}
	d.counts["dry"]++
	return fmt.Sprintf("dry %v", c.Decision.RetryAfter)
}

func (d *lineDuel) bookedText(c *enginekit.LineCaller) string {
	switch {
	case c.Err != nil:
		return c.Err.Error()
	case c.Decision.Allowed:
		d.counts["booked"]++
		return fmt.Sprintf("after %v", c.Decision.Delay)
	}
	d.counts["refused booking"]++
	return fmt.Sprintf("refused for %v", c.Decision.RetryAfter)
}

func (d *lineDuel) countNews(n enginekit.LineNews) {
	d.counts["told"] += int(min(n.Units, 1))
	d.counts["look"] += int(cmp.Compare(n.Look, 0))
	d.counts["age"] += int(cmp.Compare(n.MinAge, 0))
	if n.Passed {
		d.counts["passed"]++
	}
}
