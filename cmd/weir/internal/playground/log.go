package playground

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/report"
	"github.com/weirflow/weir/cmd/weir/internal/unpack"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// logging is an access log, with the limits to try on it or the target of those to suggest.
type logging struct {
	Name    string   `json:"name"` // of the file
	Key     string   `json:"key"`  // fields, with commas between them
	Format  string   `json:"format"`
	Tried   []string `json:"tried"`
	Suggest string   `json:"suggest"`
	Page    bool     `json:"page"`  // make the page of --report
	Names   bool     `json:"names"` // with keys instead of masks
}

// Logged is the effect that limits would have had on the log.
type Logged struct {
	Report      replay.Report        `json:"report"`                // as weir replay --format json has it
	Suggestions *replay.Suggestions  `json:"suggestions,omitempty"` // as weir replay --suggest --format json has them
	Times       []Times              `json:"times"`                 // of each limit of the report
	Unread      []accesslog.Rejected `json:"unread,omitempty"`      // the first lines that do not count
	Part        string               `json:"part,omitempty"`        // what was read, if not all
	Page        string               `json:"page,omitempty"`        // the page of --report
}

// Times are what a limit would have done over time, in steps.
type Times struct {
	First    float64 `json:"first"` // seconds since 1970
	Every    float64 `json:"every"` // seconds
	Admitted []int64 `json:"admitted"`
	Refused  []int64 `json:"refused"`
}

// Bounds of a log in the page, whose program has 1 GB of memory. The events take up to 36 bytes each; keys are as long as they are.
const (
	mostEvents = 8_000_000
	mostLive   = 224 << 20 // bytes in use when reading ends; a search needs as much again, and there is garbage
	mostTried  = 6
	topRows    = 10 // as weir replay shows
)

// run reads the log and tries the limits, or suggests some.
func (l *logging) run(host Host) (Logged, error) {
	if host.Log == nil {
		return Logged{}, plain.Misusef("drop a log on the page", "replay: no log")
	}
	traffic, part, key, err := l.read(host)
	if err != nil {
		return Logged{}, err
	}
	logged := Logged{Part: part, Times: []Times{}}
	tried := l.Tried
	if l.Suggest != "" {
		if logged.Suggestions, err = l.suggest(traffic, host); err != nil {
			return Logged{}, err
		}
		if tried = nil; logged.Suggestions.Proposed != nil && !logged.Suggestions.Proposed.ForAll {
			tried = []string{logged.Suggestions.Proposed.Limit} // so that the page shows what it would have done
		}
	}
	if logged.Report, err = l.try(traffic, tried, host); err != nil {
		return Logged{}, err
	}
	logged.Unread = traffic.Samples()
	for i := range logged.Unread {
		logged.Unread[i].Text = plain.Printable(logged.Unread[i].Text)
	}
	if err := plain.Uncounted(logged.Report); err != nil {
		return Logged{}, unread{err, logged.Unread}
	}
	for _, limit := range logged.Report.Limits {
		s := limit.Series
		logged.Times = append(logged.Times, Times{float64(logged.Report.First.UnixNano()) / 1e9, s.Every.Seconds(), s.Admitted, s.Refused})
	}
	if l.Page {
		page, err := report.Bytes(report.Replay{Logs: []string{l.Name}, Key: key.String(), Result: logged.Report, Suggestions: logged.Suggestions, Names: l.Names})
		if err != nil {
			return Logged{}, plain.Fail(err, "this is a bug in weir: please report it")
		}
		logged.Page = string(page)
	}
	cut(&logged.Report)
	return logged, nil
}

// read reads the log. part says what of it was read, if not all.
func (l *logging) read(host Host) (traffic *replay.Traffic, part string, key replay.Key, err error) {
	if key, err = replay.ParseKey(strings.Split(l.Key, ",")...); err != nil {
		return nil, "", key, plain.Misuse(fmt.Errorf("key: %w", err), "fields: ip, method, path, query, uri, status, user, referer, agent, host, or any field of JSON lines; several: ip,path")
	}
	reader, err := accesslog.NewReader(accesslog.Options{Format: l.Format})
	if err != nil {
		return nil, "", key, plain.Misuse(fmt.Errorf("format: %w", err), "formats: "+strings.Join(accesslog.Formats(), ", "), "leave it empty, and the log shows its own")
	}
	traffic = replay.NewTraffic(reader, key)
	file := &file{host: host}
	traffic.Until(func() bool { return traffic.Events() >= mostEvents || inUse(mostLive) > mostLive })
	if err := traffic.ReadLog(l.Name, unpack.Reader(file)); err != nil {
		return nil, "", key, plain.Fail(fmt.Errorf("replay: %s", strings.TrimPrefix(err.Error(), "replay: ")),
			"the log may be damaged or still being written: 'gzip -t FILE' checks a compressed one")
	}
	if traffic.Ended() {
		part = fmt.Sprintf("The first %s of the file were read, with %s: more does not fit into a page. weir replay reads all of it.",
			plain.Percent(file.read, max(host.Size, file.read)), plain.Plural(int64(traffic.Events()), "request"))
	}
	return traffic, part, key, nil
}

func (l *logging) suggest(traffic *replay.Traffic, host Host) (*replay.Suggestions, error) {
	target, err := replay.ParseTarget(l.Suggest)
	if err != nil {
		return nil, plain.LimitError("suggest", err, []string{"a target is one of: " + strings.Join(plain.TargetForms, ", ")})
	}
	found, err := traffic.Suggest(target, host.tell("searching"))
	if err != nil {
		return nil, plain.Fail(err, "this is a bug in weir: please report it with the target")
	}
	return &found, nil
}

// try replays the limits.
func (l *logging) try(traffic *replay.Traffic, limits []string, host Host) (replay.Report, error) {
	if len(limits) > mostTried {
		return replay.Report{}, plain.Misusef("leave some out", "replay: %d limits, want at most %d", len(limits), mostTried)
	}
	var candidates []replay.Candidate
	for _, text := range limits {
		limits, err := limitsOf(text)
		if err != nil {
			return replay.Report{}, err
		}
		candidates = append(candidates, replay.Candidate{Text: text, Limits: limits})
	}
	options := replay.Options{Top: topRows, Progress: host.tell("deciding")}
	if l.Page {
		options.Top, options.Timelines = report.MostRows, report.MostTimelines
	}
	result, err := traffic.Replay(candidates, options)
	if err != nil {
		return result, plain.Fail(err, "this is a bug in weir: please report it with the limits")
	}
	return result, nil
}

// cut reduces the lists of a report to the rows that the page shows, and weir replay prints.
func cut(r *replay.Report) {
	for i := range r.Limits {
		limit := &r.Limits[i]
		limit.WorstKeys, limit.WorstMinutes = limit.WorstKeys[:min(len(limit.WorstKeys), topRows)], limit.WorstMinutes[:min(len(limit.WorstMinutes), topRows)]
	}
	if d := r.Difference; d != nil {
		d.Keys = d.Keys[:min(len(d.Keys), topRows)]
	}
}

// file reads the file of a log, packed or not, and reports its progress.
type file struct {
	host       Host
	read, told int64
}

// step is the number of bytes between two reports to the host.
const step = 4 << 20

func (f *file) Read(p []byte) (int, error) {
	n, err := f.host.Log.Read(p)
	if f.read += int64(n); f.read-f.told >= step {
		f.told = f.read
		if tell := f.host.Progress; tell != nil {
			tell("reading", f.read, f.host.Size)
		}
	}
	return n, err
}

// inUse returns the bytes that are in use. Beyond a bound it leaves out garbage.
func inUse(bound uint64) uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Uint64() > bound {
		runtime.GC()
		metrics.Read(sample)
	}
	return sample[0].Value.Uint64()
}
