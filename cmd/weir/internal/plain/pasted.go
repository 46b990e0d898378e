package plain

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// pasted are the texts of other limiters that people paste, each with the limit that it means and the page that
// compares both.
var pasted = []struct {
	text *regexp.Regexp
	page string
	// meant returns the limit, from the text and the groups of the expression, and a note. The limit is empty
	// if the text does not say enough, and unreadable if no limit has its values.
	meant func(text string, groups []string) (limit, note string)
}{
	{regexp.MustCompile(`\blimit_req(_zone)?\s`), "nginx", fromNginx},
	{regexp.MustCompile(`(?i)\blimit-?for-?period\W+([0-9]+)\W+limit-?refresh-?period\b(.*)`), "resilience4j", func(_ string, g []string) (string, string) {
		return "cycle " + rateOf(g[1], g[2]), ""
	}},
	{regexp.MustCompile(`\bRateLimiter\.create\(\s*([0-9.]+)\s*(,.*)?\)`), "guava", fromGuava},
	{regexp.MustCompile(`\bRateGate\(\s*([0-9]+)\s*,(.*)\)`), "rategate", func(_ string, g []string) (string, string) {
		return "rate gate " + rateOf(g[1], g[2]), ""
	}},
	{regexp.MustCompile(`(?i)\bcl\.throttle\s+\S+\s+([0-9]+)\s+([0-9]+)\s+([0-9]+)`), "redis-cell", func(_ string, g []string) (string, string) {
		burst, _ := strconv.Atoi(g[1])
		return "token bucket " + rateOf(g[2], g[3]+"s") + " burst " + strconv.Itoa(burst+1), ""
	}},
	{regexp.MustCompile(`\binterval(\s+[0-9].*|\(.*\))`), "tokio", func(_ string, g []string) (string, string) {
		return "rate gate " + rateOf("1", g[1]), ""
	}},
	{regexp.MustCompile(`\brate\.NewLimiter\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)`), "x-time-rate", func(_ string, g []string) (string, string) {
		return "token bucket " + g[1] + "/s burst " + g[2], ""
	}},
	{regexp.MustCompile(`(?:^|[^0-9.])([0-9]+)\s*([kKmMgG])(i?)(?:B|bytes?)(?:/s|ps)`), "rategate", fromBytes},
}

// pastedHints returns the hints for a text of another limiter, or nil.
func pastedHints(text string) []string {
	const longest = 4096
	if len(text) > longest {
		return nil
	}
	for _, p := range pasted {
		groups := p.text.FindStringSubmatch(text)
		if groups == nil {
			continue
		}
		limit, note := p.meant(text, groups)
		if _, err := weir.ParseLimits(limit); err != nil && (limit != "" || note == "") {
			continue // a value that no limit has
		}
		var hints []string
		if limit != "" {
			hints = append(hints, "did you mean '"+limit+"'?")
		}
		if note != "" {
			hints = append(hints, note)
		}
		return append(hints, "docs/from/"+p.page+".md compares the two")
	}
	return nil
}

// rateOf returns a rate of a count in the first duration of a text, or "".
func rateOf(count, period string) string {
	n, err := strconv.ParseInt(count, 10, 64)
	if d := durationIn(period); err == nil && d > 0 {
		return weir.Per(n, d).String()
	}
	return ""
}

// foreignDuration matches Duration.ofMillis(1), TimeSpan.FromSeconds(1), Duration::from_millis(100), 4, TimeUnit.SECONDS
// and 100ms.
var foreignDuration = regexp.MustCompile(`(?i)(nano|micro|milli|sec|min|hour|day)[a-z]*\(\s*([0-9]+)(?:\.0*)?\s*\)|([0-9]+)\s*,\s*TimeUnit\.(nano|micro|milli|sec|min|hour|day)|([0-9]+)\s*(ns|us|ms|s|m|h|d)\b`)

var foreignUnits = map[string]time.Duration{
	"nano": time.Nanosecond, "micro": time.Microsecond, "milli": time.Millisecond, "sec": time.Second, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// durationIn returns the first duration of a text up to the longest period of a limit, or 0.
func durationIn(text string) time.Duration {
	g := foreignDuration.FindStringSubmatch(text)
	if g == nil {
		return 0
	}
	n, err := strconv.ParseInt(g[2]+g[3]+g[5], 10, 64)
	unit := foreignUnits[strings.ToLower(g[1]+g[4]+g[6])]
	if err != nil || n > int64(weir.MaxPeriod/unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// fromNginx reads both directives. limit_req alone does not say the rate.
func fromNginx(text string, _ []string) (limit, note string) {
	text = strings.TrimSpace(text)
	if !strings.HasSuffix(text, ";") {
		text += ";"
	}
	if !strings.Contains(text, "limit_req_zone") {
		return "", "the rate of a limit_req stands in its limit_req_zone: give both lines, or the whole file to weir rules import nginx FILE"
	}
	read, err := weir.ParseNginx(text)
	if err != nil {
		return "", "give limit_req_zone once and limit_req once, or the whole file to weir rules import nginx FILE"
	}
	return read.LeakyBucket().String(), ""
}

// fromGuava reads permits per second, which may have decimals, and perhaps the time to warm up.
func fromGuava(_ string, g []string) (limit, note string) {
	whole, decimals, _ := strings.Cut(g[1], ".")
	decimals = strings.TrimRight(decimals, "0")
	period := "1" + strings.Repeat("0", len(decimals)) + "s"
	rate := rateOf(whole+decimals, period)
	if warmUp := durationIn(g[2]); g[2] != "" {
		return "warm up " + rate + " over " + warmUp.String() + " cold 3", ""
	}
	return "bursty " + rate + " over 1s", ""
}

// fromBytes reads a bandwidth.
func fromBytes(_ string, g []string) (limit, note string) {
	thousand := uint64(1000)
	if g[3] != "" {
		thousand = 1024
	}
	n, err := strconv.ParseUint(g[1], 10, 20)
	for range strings.Index("kmg", strings.ToLower(g[2])) + 1 {
		n *= thousand
	}
	if err != nil {
		return "", "weir pace --bytes and weir fetch --bandwidth take a rate of bytes, like 200KB/s"
	}
	return "token bucket " + strconv.FormatUint(n, 10) + "/s", "a unit is then a byte; weir pace --bytes and weir fetch --bandwidth take the rate as you wrote it"
}
