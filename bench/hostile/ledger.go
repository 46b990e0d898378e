package main

import (
	"fmt"

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
}

// auditAccount checks one account, which clients may use meanwhile.
func auditAccount(a *trial.Account, k *worker) (used int64, known bool) {
	k.world.honestly("audits", 1)
	return a.Check(k.world.Trial, promiseCounted, func() (int64, bool) {
		e, known := k.ask(peekPath, request{a.Rule, a.Key, 0})
		return e.answer.Limit - e.answer.Remaining, known
	})
}
