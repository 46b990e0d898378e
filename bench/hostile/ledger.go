package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

// Two rules that never refuse, so that their exact counts can be read.
const (
	ledgerName = "ledger"
	creditName = "credit"
)

// ledgerRules returns the rules. In memory, the states of the second do not fit in a word.
func ledgerRules(engine string) []string {
	if engine == onRedis {
		return []string{ledgerName + "=fixed window 1000000000/365d", creditName + "=fixed window 1000000000/366d"}
	}
	return []string{ledgerName + "=token bucket 1/12h burst 9007199254740992", creditName + "=token bucket 1/366d burst 9007199254740992"}
}

// ledger is the honest clients' record of shared keys.
type ledger struct{ accounts []*trial.Account }

func newLedger() *ledger {
	l := &ledger{}
	for i := range 4 {
		key := fmt.Sprintf("account %d", i)
		l.accounts = append(l.accounts, &trial.Account{Rule: ledgerName, Key: key}, &trial.Account{Rule: creditName, Key: key})
	}
	return l
}

// inLedger returns the number of requests under the rule ledger in a call.
func inLedger(requests []request) (n int64) {
	for _, r := range requests {
		if r.Rule == ledgerName {
			n++
		}
	}
	return n
}

// step uses one account, or several at once, or one together with a limit that refuses.
func (l *ledger) step(k *worker) {
	path, several, limited := takePath, 1, false
	switch k.random.IntN(10) {
	case 0:
		path = recordPath
	case 1, 2:
		several = 2 + k.random.IntN(4)
	case 3:
		several, limited = 2, true
	}
	var touched []*trial.Account
	var requests []request
	for _, i := range k.random.Perm(len(l.accounts))[:several] {
		a := l.accounts[i]
		touched = append(touched, a)
		requests = append(requests, request{a.Rule, a.Key, 1 + k.random.Int64N(3)})
	}
	for i, a := range touched {
		a.Begun.Add(requests[i].Cost)
	}
	call := requests
	if limited {
		call = append(call, request{"third", "beside the ledger", 1})
	}
	e, known := exchange{answer: answer{Allowed: true}}, true
	if !k.broken(loseAnswer) {
		e, known = k.ask(path, call...)
	}
	for i, a := range touched {
		switch {
		case known && e.answer.Allowed:
			a.Answered.Add(requests[i].Cost)
		case known:
			a.Begun.Add(-requests[i].Cost)
		}
	}
	if known && !limited && !e.answer.Allowed {
		k.world.Break(promiseBounds, "a limit with room for all was said to be full: %s was answered with %+v", bodyOf(requests...), e.answer)
	}
}

// look audits one account while other clients use it.
func (l *ledger) look(k *worker) {
	auditAccount(l.accounts[k.random.IntN(len(l.accounts))], k)
	if k.random.IntN(10) == 0 {
		auditStatistics(k.world)
	}
}

// audit checks every account when no client uses it: the daemon has counted exactly what it answered.
func (l *ledger) audit(w *world) {
	k := &worker{world: w, random: fixedRandom()}
	defer k.http.close()
	defer k.idle.close()
	var answered, counted int64
	for _, a := range l.accounts {
		used, known := auditAccount(a, k)
		if least := a.Answered.Load(); known && used != least {
			w.Break(promiseCounted, "%s, %q: at the end %d units are admitted in answers and %d are counted", a.Rule, a.Key, least, used)
		}
		answered, counted = answered+a.Answered.Load(), counted+used
	}
	w.Note("on %s, %d shared keys: %d units admitted in answers, %d units counted by the daemon", w.engine, len(l.accounts), answered, counted)
	auditStatistics(w)
}

// auditAccount checks one account, which clients may use meanwhile.
func auditAccount(a *trial.Account, k *worker) (used int64, known bool) {
	k.world.honestly("audits", 1)
	return a.Check(k.world.Trial, promiseCounted, func() (int64, bool) {
		e, known := k.ask(peekPath, request{a.Rule, a.Key, 0})
		return e.answer.Limit - e.answer.Remaining, known
	})
}

// auditStatistics compares the daemon's statistics with its decisions. A daemon that stops, or has too many
// connections, gives none.
func auditStatistics(w *world) {
	if w.engine == onRedis {
		return // has none
	}
	var c client
	defer c.close()
	d := w.current.Load()
	least := d.answered.Load()
	reported, err := statistics(&c, d)
	most := d.sent.Load()
	if err != nil {
		w.Break(promiseAnswered, "%v", err)
	}
	for _, one := range reported {
		if one.Rule == ledgerName && (one.Decisions < least || one.Decisions > most) {
			w.Break(promiseCounted, "the statistics of daemon %d, %v after its start, tell %d decisions of the rule ledger, and honest clients know of %d to %d", d.number, time.Since(d.begun).Round(time.Millisecond), one.Decisions, least, most)
		}
	}
}

// ruleStatistics are the part of /v1/stats about a rule.
type ruleStatistics struct {
	Rule      string `json:"rule"`
	Decisions int64  `json:"decisions"`
}

// statistics reads /v1/stats. It returns none without an answer, or with a refusal for lack of room.
func statistics(c *client, d *daemon) ([]ruleStatistics, error) {
	r := c.ask(d.address, "/v1/stats", "", style{})
	if r.outcome != answered || r.status == http.StatusServiceUnavailable {
		return nil, nil
	}
	var reported struct {
		Rules []ruleStatistics `json:"rules"`
	}
	if err := json.Unmarshal(r.body, &reported); err != nil || r.status != http.StatusOK {
		return nil, fmt.Errorf("/v1/stats was answered with %d: %.300s", r.status, r.body)
	}
	return reported.Rules, nil
}
