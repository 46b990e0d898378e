package accesslog

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// A request may hold any text but a space, which IIS writes as a plus sign.
func TestAClientOfIISCannotForgeAnAddress(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	columns := []string{"cs-uri-stem", "cs-uri-query", "cs-username", "c-ip", "cs(User-Agent)", "cs(Referer)", "sc-status"}
	for range 2000 {
		random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
		line := "2023-10-11 22:14:11"
		for _, name := range columns {
			line += " "
			for range 1 + random.IntN(3) {
				line += pickOf(random, `"`, `""`, "+203.0.113.9+", "-", "a", `"203.0.113.9"`, ",", "\t")
			}
			if name == "c-ip" {
				line = line[:strings.LastIndexByte(line, ' ')+1] + "192.0.2.1"
			}
		}
		log := "#Fields: date time " + strings.Join(columns, " ") + "\n" + line
		if got, r := read(t, Options{}, log, "ip"); len(got) != 1 || got[0] != "192.0.2.1" {
			t.Fatalf("%s: got clients %v, %v, want 192.0.2.1", log, got, r.Reasons())
		}
	}
}

func TestALineOfColumnsNeedsAValueForEach(t *testing.T) {
	const iis, csv = "#Fields: date time cs-uri-query c-ip sc-status\n2023-10-11 22:14:11 - 192.0.2.1 200\n", "time,path,ip,agent\n2023-10-11T22:14:11Z,/a,192.0.2.1,b\n"
	for _, c := range []struct{ log, line string }{
		{iis, `2023-10-11 22:14:11 a 203.0.113.9 192.0.2.1 200`},
		{iis, `2023-10-11 22:14:11 "a 203.0.113.9 192.0.2.1" 200`},
		{iis, `2023-10-11 22:14:11 - 192.0.2.1`},
		{iis, `2023-10-11 22:14:11 - 192.0.2.1 200 `},
		{csv, `2023-10-11T22:14:11Z,/a?1,203.0.113.9,192.0.2.1,`}, // of a writer that quotes nothing
		{csv, `2023-10-11T22:14:11Z,/a,192.0.2.1`},
	} {
		got, r := read(t, Options{}, c.log+c.line, "ip")
		want := []Reason{{Reason: whyColumns, Lines: 1}}
		if len(got) != 1 || got[0] != "192.0.2.1" || !slices.Equal(r.Reasons(), want) {
			t.Errorf("%s: got clients %v, %v, want one, and %v", c.line, got, r.Reasons(), want)
		}
	}
}

func TestTheFirstLinesOfALogMayHaveSeveralDirectives(t *testing.T) {
	log := "2023-10-11 22:14:10 10.0.0.1 /a\n" + // before it as behind the first
		"#Fields: date time c-ip cs-uri-stem\n2023-10-11 22:14:11 10.0.0.1 /a\n#Fields: date time sc-status cs-uri-stem c-ip\n2023-10-11 22:14:12 200 /a 10.0.0.1\n"
	got, r := read(t, Options{}, log, "ip")
	if want := "fits all of the first 3 lines"; len(got) != 3 || r.Found()[0].Why != want {
		t.Errorf("got %v, %+v, want 3 entries, which %s", got, r.Found(), want)
	}
}

func TestColumnsOfTheTimeAreReadAloneOrTogether(t *testing.T) {
	for _, log := range []string{
		"date,time,ip\n2023-10-11,22:14:11,192.0.2.1",
		"date,time,ip\n2023-10-11T22:14:11Z,0.005,192.0.2.1",
		"time,date,ip\n2023-10-11T22:14:11Z,20231011,192.0.2.1",
		"user\ttime\tip\n\t2023-10-11T22:14:11Z\t192.0.2.1",
		"\ttime\tip\n0\t2023-10-11T22:14:11Z\t192.0.2.1",
	} {
		got, r := read(t, Options{}, log, "ip")
		if len(got) != 1 || got[0] != "192.0.2.1" || !strings.HasPrefix(r.Found()[0].Why, "fits all") {
			t.Errorf("%s: got clients %v, %+v, %v, want 192.0.2.1", log, got, r.Found(), r.Reasons())
		}
	}
}
