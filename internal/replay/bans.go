package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// BanReport shows what the ban of a limit would have done, before it is used.
type BanReport struct {
	Keys    int   `json:"keys"`    // banned at least once
	Begun   int64 `json:"begun"`   // bans of all keys
	Refused int64 `json:"refused"` // requests that bans refused
	// Gone are the banned keys that attempted nothing more in the log once their first ban had begun, later than a second after it:
	// what a page asks at once is under way already.
	Gone int `json:"gone"`
	// OneBurst are the banned keys whose first ban one burst alone began: all the refusals that it takes came within a second,
	// as those of parallel requests of an honest client do.
	OneBurst int         `json:"one_burst"`
	Worst    []BannedKey `json:"worst"` // those that were banned longest come first
}

// BannedKey holds the bans that one key would have had.
type BannedKey struct {
	Key     string    `json:"key"`
	Name    string    `json:"name,omitempty"` // name of the customer whose key it is, if the program knows it
	Begun   int64     `json:"begun"`
	Seconds float64   `json:"seconds"` // the sum of its bans
	Longest float64   `json:"longest"` // in seconds
	Refused int64     `json:"refused"`
	First   time.Time `json:"first"` // when its first ban began
	Gone    bool      `json:"gone"`
	Burst   bool      `json:"one_burst"`
}

// name names the banned keys, if there are any.
func (b *BanReport) name(name func(key string) string) {
	if b == nil {
		return
	}
	for i := range b.Worst {
		b.Worst[i].Name = name(b.Worst[i].Key)
	}
}

// Called returns the name of the customer, or the key of one without a name.
func (k BannedKey) Called() string { return cmp.Or(k.Name, k.Key) }

// burst is the time within which the requests of one page, or of one caller that does not wait for answers, come. Most logs have
// whole seconds.
const burst = int64(time.Second)

// banned holds the bans of one key.
type banned struct {
	strikes []int64 // within the last burst, since the last ban
	until   int64   // the end of the last ban
	first   int64   // the begin of the first

	begun, refused, later int64 // later are attempts after the burst that began the first ban
	total, longest        int64
	burst                 bool
}

// count counts a decision of a limit whose ban begins after a number of refusals. A ban is known by its end, because one that
// began while another limit refused for longer shows only later.
func (b *banned) count(at int64, d weir.Decision, after int64) {
	if b.begun > 0 && at-b.first >= burst {
		b.later++
	}
	if d.Allowed || d.RetryAfter == weir.Never {
		return
	}
	until := at + min(int64(d.RetryAfter), math.MaxInt64-max(at, 0))
	switch {
	case d.Cause != weir.ByBan:
		b.strike(at)
	case until <= b.until:
		b.refused++
	default:
		b.strike(at)
		if b.begun++; b.begun == 1 {
			b.first, b.burst = at, d.BanBegun && int64(len(b.strikes)) >= after
		}
		if !d.BanBegun {
			b.refused++
		}
		b.until, b.strikes = until, b.strikes[:0]
		b.total, b.longest = b.total+min(until-at, math.MaxInt64-b.total), max(b.longest, until-at)
	}
}

func (b *banned) strike(at int64) {
	for len(b.strikes) > 0 && at-b.strikes[0] >= burst {
		b.strikes = b.strikes[1:]
	}
	b.strikes = append(b.strikes, at)
}

// StrikesOf returns how many refusals begin the ban among some limits, or 0 without one.
func StrikesOf(limits []weir.Limit) int64 {
	for _, l := range limits {
		if d := weir.Describe(l); d.Bans {
			return d.Strikes
		}
	}
	return 0
}

// banReport returns the bans that all keys would have had; nil if the limit has none.
func (o *outcome) banReport(keys []string, top int) *BanReport {
	if o.after == 0 {
		return nil
	}
	r := &BanReport{Worst: []BannedKey{}}
	for id, b := range o.banned {
		if b.begun == 0 {
			continue
		}
		k := BannedKey{
			Key: valid(keys[id]), Begun: b.begun, Seconds: float64(b.total) / 1e9, Longest: float64(b.longest) / 1e9, Refused: b.refused,
			First: time.Unix(0, b.first).UTC(), Gone: b.later == 0, Burst: b.burst,
		}
		r.Keys, r.Begun, r.Refused = r.Keys+1, r.Begun+k.Begun, r.Refused+k.Refused
		if k.Gone {
			r.Gone++
		}
		if k.Burst {
			r.OneBurst++
		}
		r.Worst = append(r.Worst, k)
	}
	slices.SortFunc(r.Worst, func(a, b BannedKey) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Key, b.Key))
	})
	r.Worst = r.Worst[:min(len(r.Worst), max(top, 0))]
	return r
}
