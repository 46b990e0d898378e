package backtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

// BanLines says whom the ban of a limit would have hit, in sentences; it is empty without a ban. A key is called who.
func BanLines(b *replay.BanReport, who string) (lines []string) {
	switch {
	case b == nil:
		return nil
	case b.Keys == 0:
		return []string{"The ban would have begun for no " + who + "."}
	}
	lines = append(lines, fmt.Sprintf("The ban would have hit %s, %s in all, and have refused %s.", plain.Plural(int64(b.Keys), who), howOften(b.Begun), plain.Plural(b.Refused, "request")))
	lines = append(lines, fmt.Sprintf("%s attempted nothing more after the first ban began.", ofThem(b.Gone)))
	if b.OneBurst > 0 {
		lines = append(lines, fmt.Sprintf("%s would have been banned by one burst alone: all the refusals came within a second, as those of an honest client with parallel requests do. "+
			"More refusals before a ban, or a larger burst, spare them.", ofThem(b.OneBurst)))
	}
	return lines
}

func howOften(n int64) string {
	if n == 1 {
		return "once"
	}
	return plain.Plural(n, "time")
}

func ofThem(n int) string {
	if n == 0 {
		return "None of them"
	}
	return plain.Thousands(int64(n)) + " of them"
}

// BanText returns the sentences and those that were banned longest.
func BanText(l replay.LimitReport, who string, s screen.Screen) string {
	if l.Bans == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range BanLines(l.Bans, who) {
		b.WriteString(s.Wrap(line+"\n", 2))
	}
	if len(l.Bans.Worst) == 0 {
		return b.String()
	}
	t := screen.Table{Indent: "  ", Columns: []screen.Column{{Title: "banned " + who + "s"}, {Title: "bans", Rank: 2}, {Title: "banned for"}, {Title: "longest", Rank: 2},
		{Title: "refused", Colour: screen.Refused}, {Title: "first (UTC)", Rank: 1}, {Title: "", Rank: 3}}}
	for _, k := range l.Bans.Worst {
		t.Rows = append(t.Rows, []string{plain.Shorten(plain.Printable(k.Called())), plain.Thousands(k.Begun), seconds(k.Seconds), seconds(k.Longest), plain.Thousands(k.Refused),
			k.First.Format("2006-01-02 15:04:05"), what(k)})
	}
	return b.String() + s.Table(t)
}

func what(k replay.BannedKey) string {
	var all []string
	if k.Burst {
		all = append(all, "by one burst")
	}
	if k.Gone {
		all = append(all, "then gone")
	}
	return strings.Join(all, ", ")
}

func seconds(n float64) string {
	return plain.Duration(time.Duration(n * float64(time.Second)).Round(time.Second))
}
