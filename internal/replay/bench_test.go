package replay_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/weirflow/weir/internal/replay"
)

// BenchmarkReplay reads a million unsorted lines from memory and decides them under one limit on one core. This is
// all the work of weir replay except reading the disk. Each format has 100,000 keys, and the benchmark checks all
// answers.
func BenchmarkReplay(b *testing.B) {
	const lines, keys = 1_000_000, 100_000
	for _, format := range []struct {
		name string
		line func(address, second, n int) string
	}{
		{"combined", combinedLine},
		{"json", jsonLine},
	} {
		log := benchmarkLog(lines, keys, format.line)
		b.Run(format.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				report := replayOf(b, "ip", replay.Options{Top: 10}, log, "token bucket 1/s burst 10")
				limit := report.Limits[0]
				if report.Lines != lines || report.Unparsed != 0 || report.Keys != keys {
					b.Fatalf("got %d lines, %d unparsed, %d keys, want %d, 0, %d", report.Lines, report.Unparsed, report.Keys, lines, keys)
				}
				if limit.Admitted+limit.Refused != lines || limit.Refused == 0 || limit.Admitted == 0 {
					b.Fatalf("got %d admitted and %d refused of %d lines", limit.Admitted, limit.Refused, lines)
				}
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// benchmarkLog returns a skewed log: a few addresses make most requests. Times jump back and forth within a minute.
func benchmarkLog(lines, keys int, line func(address, second, n int) string) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, uint64(keys-1))
	var log bytes.Buffer
	for n := range lines {
		address := n
		if n >= keys {
			address = int(zipf.Uint64())
		}
		log.WriteString(line(address, n/100+random.IntN(60), n))
	}
	return log.Bytes()
}

func combinedLine(address, second, n int) string {
	return fmt.Sprintf("10.%d.%d.%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /presentations/%d/images/search.png HTTP/1.1\" 200 203023 "+
		"\"http://example.org/presentations/2013/\" \"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0 Safari/537.36\"\n",
		address>>16, address>>8&255, address&255, second/3600%24, second/60%60, second%60, n)
}

func jsonLine(address, second, n int) string {
	return fmt.Sprintf(`{"time":"2015-05-17T%02d:%02d:%02d.%03dZ","remote_addr":"10.%d.%d.%d","method":"GET","uri":"/presentations/%d/images/search.png","status":200,`+
		`"bytes":203023,"duration":0.012,"referer":"http://example.org/presentations/2013/","user_agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1)"}`+"\n",
		second/3600%24, second/60%60, second%60, n%1000, address>>16, address>>8&255, address&255, n)
}

// replayOf reads one log and replays the limits on it.
func replayOf(t testing.TB, key string, options replay.Options, log []byte, limits ...string) replay.Report {
	t.Helper()
	parsed, err := replay.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	traffic := replay.NewTraffic(nil, parsed)
	if err := traffic.ReadLog("log", bytes.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	var candidates []replay.Candidate
	for _, text := range limits {
		c, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, c)
	}
	report, err := traffic.Replay(candidates, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// realLog returns the log of testdata, uncompressed.
func realLog(t testing.TB) []byte {
	t.Helper()
	file, err := os.Open("../../simulate/testdata/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
