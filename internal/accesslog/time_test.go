package accesslog

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/randtest"
)

func TestTimesOfLogsAreRead(t *testing.T) {
	noon := time.Date(2015, 5, 17, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want time.Time
	}{
		{"17/May/2015:12:00:00 +0000", noon},
		{"17/May/2015:14:00:00 +0200", noon},
		{"17/May/2015:06:30:00 -0530", noon},
		{"2015-05-17T12:00:00Z", noon},
		{"2015-05-17T14:00:00+02:00", noon},
		{"2015-05-17T12:00:00.000000001Z", noon.Add(1)},
		{"2015-05-17T12:00:00.12345Z", noon.Add(123450 * time.Microsecond)}, // as long as the common form
		{"2015-05-17 12:00:00", noon},
		{"2015-05-17T12:00:00,250", noon.Add(250 * time.Millisecond)},
		{"17/May/2015:12:00:00.250", noon.Add(250 * time.Millisecond)},
		{"2015/05/17 14:00:00+02", noon},
		{"1431864000", noon},
		{"1431864000.25", noon.Add(250 * time.Millisecond)},
		{"1431864000.1234567899", noon.Add(123456789)},
		{"1431864000250", noon.Add(250 * time.Millisecond)},
		{"1431864000250.5", noon.Add(250500 * time.Microsecond)},
		{"1431864000000001", noon.Add(time.Microsecond)},
		{"1431864000000000001", noon.Add(1)},
		{"0", time.Unix(0, 0)},
		{"-1.5", time.Unix(-2, 5e8)},
		{"20231311", time.Unix(20231311, 0)}, // no date
		{"1678-01-01T00:00:00Z", time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"31/Dec/2261:23:59:59 +0000", time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)},
	} {
		got, why := parseTime([]byte(c.text))
		if why != "" || got.at != c.want.UnixNano() {
			t.Errorf("time %q: got %d %q, want %d", c.text, got.at, why, c.want.UnixNano())
		}
	}
}

func TestTimesThatCannotBeReadSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		"20231011":                   whyCompact,
		"19000101":                   whyCompact,
		"20991231":                   whyCompact,
		"202310112214":               whyCompact,
		"20231011221411":             whyCompact,
		"":                           whyBadTime,
		"yesterday":                  whyBadTime,
		"17/Mai/2015:12:00:00 +0000": whyBadTime,
		"31/Feb/2015:12:00:00 +0000": whyBadTime,
		"17/May/2015:24:00:00 +0000": whyBadTime,
		"17/May/2015:12:60:00 +0000": whyBadTime,
		"17/May/2015:12:00:60 +0000": whyBadTime,
		"17/May/2015:12:00:0x +0000": whyBadTime,
		"17/May/2015 12:00:00 +0000": whyBadTime,
		"2015-05-17 12:00":           whyBadTime,
		"2015-05-17T12:00:00+25:00":  whyBadTime,
		"2015-05-17T12:00:00 CEST":   whyBadTime,
		"-":                          whyBadTime,
		".5":                         whyBadTime,
		"5.":                         whyBadTime,
		"1.2.3":                      whyBadTime,
		"1e9":                        whyBadTime,
		"31/Dec/1677:23:59:59 +0000": whyRange,
		"2262-01-01T00:00:00Z":       whyRange,
		"99999999999":                whyRange,
		"99999999999999999999999999": whyRange,
	} {
		if got, why := parseTime([]byte(text)); why != want {
			t.Errorf("time %q: got %v, reason %q, want %q", text, got, why, want)
		}
	}
}

func TestDatesOfTheCommonFormatAreReadInAnyZone(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for range 10_000 {
		zone := time.FixedZone("", (random.IntN(4)-2)*5400)
		want := time.Unix(1431864000+random.Int64N(4*86400), 0).In(zone)
		text := want.Format("02/Jan/2006:15:04:05 -0700")
		if got, why := parseTime([]byte(text)); why != "" || got.at != want.UnixNano() {
			t.Fatalf("time %q: got %d %q, want %d", text, got.at, why, want.UnixNano())
		}
	}
}

func TestADurationOrADateAloneIsNotTakenForTheTime(t *testing.T) {
	night := time.Date(2023, 10, 11, 22, 14, 11, 0, time.UTC).UnixNano()
	for _, c := range []struct{ line, why string }{
		{`{"date":"20231011","time":"2023-10-11T22:14:11Z","k":"a"}`, ""},
		{`{"msec":12,"time":"2023-10-11T22:14:11Z","k":"a"}`, ""},
		{`{"date":5,"time":1697062451,"k":"a"}`, ""},
		{`{"time":0.005,"timestamp":"2023-10-11T22:14:11Z","k":"a"}`, ""},
		{`{"date":"20231011","time":"22:14:11","k":"a"}`, whyCompact},
		{`{"timestamp":"20231011221411","k":"a"}`, whyCompact},
		{`{"duration":5,"time":5,"start":"2023-10-11T22:14:11Z","k":"a"}`, whyEarly},
		{`{"time":-1,"k":"a"}`, whyEarly},
	} {
		at, key, why := one(t, c.line, "k")
		if why != c.why || why == "" && (key != "a" || at != night) {
			t.Errorf("%s: got %q at %d, reason %q, want reason %q", c.line, key, at, why, c.why)
		}
	}
}

func TestZerosBehindASecondTellNoFinerStep(t *testing.T) {
	for _, c := range []struct {
		times []string
		want  time.Duration
	}{
		{[]string{"2023-10-11T22:14:11.000Z", "2023-10-11T22:14:12.000Z"}, time.Second},
		{[]string{"2023-10-11T22:14:11.000Z", "2023-10-11T22:14:12.040Z"}, time.Millisecond},
		{[]string{"2023-10-11T22:14:11.5Z", "2023-10-11T22:14:12.0Z"}, 100 * time.Millisecond},
		{[]string{"2023-10-11T22:14:11.250000Z", "2023-10-11T22:14:12.123000Z"}, time.Millisecond},
		{[]string{"2023-10-11T22:14:11.250000Z", "2023-10-11T22:14:12.123001Z"}, time.Microsecond},
		{[]string{"1697062451000", "1697062452000"}, time.Second},
		{[]string{"1697062451.000", "1697062452.123"}, time.Millisecond},
		{[]string{"1697062451000000000", "1697062451000000001"}, 1},
	} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		log := `{"timestamp":"` + strings.Join(c.times, `"}`+"\n"+`{"timestamp":"`) + `"}`
		err = r.Read("log", strings.NewReader(log), func(e *Entry) (string, error) {
			if e.Step != c.want {
				t.Errorf("%v: got step %s, want %s", c.times, e.Step, c.want)
			}
			return "", nil
		})
		if err != nil || r.Rejected() > 0 {
			t.Fatal(err, r.Reasons())
		}
	}
}

func TestALogSaysThatSomeOfItsTimesHaveNoZone(t *testing.T) {
	zoned, zoneless := `{"timestamp":"2023-10-11T22:14:11Z"}`, `{"timestamp":"2023-10-11T22:14:11"}`
	for log, want := range map[string]bool{zoned + "\n" + zoned: false, zoned + "\n" + zoneless: true, zoneless + "\n" + zoned: true} {
		_, r := read(t, Options{}, log)
		if got := r.Found()[0].Time; strings.Contains(got, "without a zone") != want {
			t.Errorf("%s: got time %q, which says that there is no zone: want %t", log, got, want)
		}
	}
}
