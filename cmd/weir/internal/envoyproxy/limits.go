package envoyproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

const day = 24 * time.Hour

// periods are the lengths of units. Windows begin at whole multiples of them since 1970.
var periods = map[service.RateLimitResponse_RateLimit_Unit]time.Duration{
	service.RateLimitResponse_RateLimit_SECOND: time.Second,
	service.RateLimitResponse_RateLimit_MINUTE: time.Minute,
	service.RateLimitResponse_RateLimit_HOUR:   time.Hour,
	service.RateLimitResponse_RateLimit_DAY:    day,
	service.RateLimitResponse_RateLimit_WEEK:   7 * day,
	service.RateLimitResponse_RateLimit_MONTH:  30 * day,
	service.RateLimitResponse_RateLimit_YEAR:   365 * day,
}

// Period returns the length of a unit, or 0.
func Period(unit service.RateLimitResponse_RateLimit_Unit) time.Duration { return periods[unit] }

// draft is the limit of a descriptor while it is read.
type draft struct {
	*Limit
	given       bool
	count       int64
	unit        string
	own         []weir.Limit
	extended    bool
	at          rules.Value // the rate_limit
	limitAt     rules.Value // the number, or the limit in text form
	extensionAt rules.Value
}

// rateLimit reads a rate_limit.
func (r *reader) rateLimit(l *draft, v rules.Value) {
	if v.IsEmpty() {
		return
	}
	l.given, l.at = true, v
	r.fields(v, "rate_limit", map[string]func(rules.Value){
		"unit":              func(v rules.Value) { l.unit = strings.ToUpper(v.Text("a unit")) },
		"requests_per_unit": func(v rules.Value) { l.count, l.limitAt = v.Whole(0, math.MaxUint32), v },
		"unlimited":         func(v rules.Value) { l.Unlimited = v.Flag() },
		"name":              func(v rules.Value) { l.Name = v.Text("a name") },
		"replaces":          func(v rules.Value) { r.replaces(l, v) },
	})
	if slices.Contains(l.Replaces, l.Name) && l.Name != "" {
		v.Fail("replaces names the limit itself")
	}
}

func (r *reader) replaces(l *draft, v rules.Value) {
	for _, one := range v.List("a list of names, each beginning with '- name: '") {
		name := ""
		r.fields(one, "replaces", map[string]func(rules.Value){"name": func(v rules.Value) {
			name = v.Text("a name")
			r.replaced = append(r.replaced, named{name, v})
		}})
		if name == "" {
			one.Fail("replaces has no name")
		}
		l.Replaces = append(l.Replaces, name)
	}
}

// extension reads our own key.
func (r *reader) extension(l *draft, v rules.Value) {
	l.extended, l.extensionAt = true, v
	fields, _ := v.Fields("limit, all_or_nothing and on_failure")
	for _, f := range fields {
		switch f.Name {
		case "limit":
			l.own, l.limitAt, l.Own = f.Limits(), f.Value, true
		case "all_or_nothing":
			l.Atomic = f.Flag()
		case "on_failure":
			l.HasPolicy = l.OnFailure.UnmarshalText([]byte(f.OneOf("deny", "allow", "local"))) == nil
		default:
			f.Key.Fail("the key %q of weir is unknown, want limit, all_or_nothing or on_failure", f.Name)
		}
	}
}

// finish makes the rules of the engine.
func (r *reader) finish(l *draft, path string, v rules.Value) {
	l.File, l.Line = v.Place()
	l.path = path
	unit := service.RateLimitResponse_RateLimit_Unit(service.RateLimitResponse_RateLimit_Unit_value[l.unit])
	switch {
	case l.Unlimited && unit != 0:
		l.at.Fail("rate_limit has a unit and is unlimited")
		return
	case l.Unlimited && l.Own:
		l.limitAt.Fail("is the limit of a rate_limit that is unlimited")
		return
	case l.Unlimited:
		if !l.limitAt.IsEmpty() {
			r.note(l.limitAt, "requests_per_unit has no meaning in a rate_limit that is unlimited")
		}
		r.config.Limits = append(r.config.Limits, l.Limit)
		return
	case l.Own && len(l.own) == 0: // it failed
		return
	case unit == 0:
		l.at.Fail("the unit %q of rate_limit is none of second, minute, hour, day, week, month, year", strings.ToLower(l.unit))
		return
	case len(r.list) == maxLimits:
		l.at.Fail("is limit %d, want at most %d", maxLimits+1, maxLimits)
		return
	case l.limitAt.IsEmpty():
		r.note(l.at, "rate_limit has no requests_per_unit, so it refuses everything")
		l.limitAt = l.at
	}
	l.Shown = &service.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(l.count), Unit: unit, Name: l.Name}
	r.clamp(l, periods[unit])
	if err := r.makeRules(l, path, periods[unit]); err != nil {
		l.limitAt.FailLimit(err)
		return
	}
	r.config.Limits = append(r.config.Limits, l.Limit)
	r.list = append(r.list, &rules.Rule{Name: l.Rule.Name(), Full: l.Full, File: l.File, Line: l.Line, OnFailure: l.OnFailure, HasPolicy: l.HasPolicy, Limit: l.Rule})
}

// clamp lowers a number above the largest rate, one unit a nanosecond, to that rate. No traffic reaches either.
func (r *reader) clamp(l *draft, period time.Duration) {
	if most := int64(period); !l.Own && l.count > most {
		r.note(l.limitAt, "requests_per_unit %d is held as %d, the largest rate, which is unlimited in effect", l.count, most)
		l.count = most
	}
}

// makeRules makes the rules of a limit.
func (r *reader) makeRules(l *draft, path string, period time.Duration) (err error) {
	name := r.name(path)
	if short := r.short[path]; short != "" && short != name {
		l.Full, name = name, r.unique(short)
	}
	if !l.Own {
		return l.Windows(name, weir.Rate{Count: l.count, Period: period}, r.newRule)
	}
	if l.Rule, err = r.newRule(name, l.own...); err == nil && (l.Atomic || r.config.AllOrNothing) && weir.Describe(l.own[0]).Alone {
		l.limitAt.Fail("stands alone, and all_or_nothing takes from several limits at once")
	}
	return err
}

// Windows makes the rules of a limit that counts in windows. A limit of nothing counts in a window of one.
func (l *Limit) Windows(name string, rate weir.Rate, newRule func(name string, limits ...weir.Limit) (*weir.Rule, error)) (err error) {
	window := func(count int64) (*weir.Rule, error) {
		return newRule(name, weir.FixedWindow{Rate: weir.Rate{Count: count, Period: rate.Period}})
	}
	if l.Rule, err = window(max(rate.Count, 1)); err != nil {
		return err
	}
	if l.Beyond, err = window(rate.Count + 1); err != nil {
		l.Beyond = l.Rule // the largest limit that is held: no count goes beyond it
	}
	return nil
}

// newRule makes a rule that the engine can hold.
func (r *reader) newRule(name string, limits ...weir.Limit) (*weir.Rule, error) {
	rule, err := weir.NewRule(name, limits...)
	if err == nil && r.Check != nil {
		err = r.Check(rule)
	}
	return rule, err
}

// name returns the name of a rule: its path, as statistics have it. A path that is no name is changed, and so is the name of
// another one. A long path ends in its hash, so its name does not depend on other files. A ~ would make a shadow of
// the rule.
func (r *reader) name(path string) string {
	const most, hash = 200, 16
	name := strings.ToValidUTF8(unnameable.Replace(path), "")
	if len(name) > most {
		sum := sha256.Sum256([]byte(path))
		name = strings.ToValidUTF8(name[:most-hash-1], "") + "#" + hex.EncodeToString(sum[:hash/2])
	}
	return r.unique(name)
}

// unique returns a name that no other rule has.
func (r *reader) unique(name string) string {
	for i, base := 2, name; r.names[name]; i++ {
		name = fmt.Sprintf("%s#%d", base, i)
	}
	r.names[name] = true
	return name
}

var unnameable = strings.NewReplacer("=", "%3D", "\x00", "%00", "~", "%7E")
