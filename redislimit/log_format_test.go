package redislimit_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// A log that is written without a pause for years comes to the end of what its
// totals (2^32 units) and instants (2^48 us) can count. Here it is put there.
func TestALogOutlivesItsNumbers(t *testing.T) {
	client := dial(t, redistest.Start(t))
	now := int64(1_700_000_000_000_000) // us
	clock := func() int64 { return now * 1000 }
	redis := newEngine(t, client, redislimit.Options{Clock: clock})
	for _, limit := range []weir.Limit{weir.SlidingLog{Rate: weir.PerHour(9)}, weir.RateGate{Rate: weir.PerHour(9)}} {
		memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		rule := newRule(t, limit.String(), limit)
		step := func(what string, verb func(weir.Engine) (weir.Decision, error)) {
			t.Helper()
			want, err := verb(memory)
			if err != nil {
				t.Fatalf("%s: memory: %v", limit, err)
			}
			if got, err := verb(redis); err != nil || got != want {
				t.Errorf("%s: %s:\ngot  %+v (%v)\nwant %+v", limit, what, got, err, want)
			}
			now += 7 * 60 * 1e6
		}
		take := func(cost int64) func(weir.Engine) (weir.Decision, error) {
			return func(e weir.Engine) (weir.Decision, error) { return e.Take(t.Context(), rule.For("k", cost)) }
		}
		record := func(cost int64) func(weir.Engine) (weir.Decision, error) {
			return func(e weir.Engine) (weir.Decision, error) { return e.Record(t.Context(), rule.For("k", cost)) }
		}
		step("before", take(2))
		step("before", take(1))
		age(t, client)
		for range 30 {
			step("take", take(1))
			step("take", take(3))
			step("give back", record(-1))
			step("record", record(4))
		}
		do(t, client, "FLUSHALL")
	}
}

// age moves the numbers of the only log to 3 units before the end of its totals,
// and the newest entry to the last instant that it can hold.
func age(t *testing.T, client rueidis.Client) {
	t.Helper()
	const header, entry = 20, 10
	keys := stored(t, client)
	if len(keys) != 1 {
		t.Fatalf("got keys %q, want one", keys)
	}
	text, err := client.Do(t.Context(), client.B().Get().Key(keys[0]).Build()).ToString()
	log := []byte(text)
	if err != nil || len(log) <= header || (len(log)-header)%entry != 0 {
		t.Fatalf("got a log of %d bytes and error %v, want a header of %d and entries of %d", len(log), err, header, entry)
	}
	newest := len(log) - entry
	shift := uint64(1)<<48 - 1 - offset(log[newest:])
	base := math.Float64frombits(binary.LittleEndian.Uint64(log[8:]))
	binary.LittleEndian.PutUint64(log[8:], math.Float64bits(base-float64(shift)))
	units := uint32(math.MaxUint32 - 5)
	addTo(log[16:], units)
	for at := header; at < len(log); at += entry {
		moved := offset(log[at:]) + shift
		for i := range 6 {
			log[at+i] = byte(moved >> (8 * i))
		}
		addTo(log[at+6:], units)
	}
	do(t, client, "SET", keys[0], string(log))
}

func offset(entry []byte) (us uint64) {
	for i := range 6 {
		us |= uint64(entry[i]) << (8 * i)
	}
	return us
}

func addTo(total []byte, units uint32) {
	binary.LittleEndian.PutUint32(total, binary.LittleEndian.Uint32(total)+units)
}
