package accesslog

import (
	"bytes"
	"fmt"
	"time"
)

// score says how well a layout reads lines: first by the number of lines with a client and a time, then by those with a
// time, then by how much of the lines it explains.
type score struct{ clients, times, fit, whole, lines int }

func (s score) above(o score) bool {
	switch {
	case s.clients != o.clients:
		return s.clients > o.clients
	case s.times != o.times:
		return s.times > o.times
	}
	return s.fit > o.fit
}

// settle returns the layout that reads the first lines of a log best, the first of several that do.
func settle(lines [][]byte, told []format, r *Reader) *layout {
	var best *layout
	var most score
	inside := 0
	for i := range wrappers {
		inner, unwrapper := unwrapped(&wrappers[i], lines)
		if 2*len(inner) < len(lines) || len(inner) == 0 {
			continue
		}
		for j := range told {
			l, has := newLayout(&told[j], inner, r)
			if !has && !told[j].told {
				continue
			}
			s := l.score(inner, r.wanted)
			if best == nil || s.above(most) {
				best, most, inside = l, s, len(inner)
				l.wrapIn(&wrappers[i], unwrapper)
			}
		}
	}
	if most.clients+most.whole == 0 && len(told) > 1 {
		best, _ = newLayout(fallback(lines), lines, r)
		best.format.told = false
		best.fits = "no format fits the first lines"
		best.step = time.Second
		return best
	}
	best.fits = fits(best.format, most, most.lines+len(lines)-inside)
	return best
}

// fallback is the format whose reasons explain best why lines are rejected that fit no format.
func fallback(lines [][]byte) *format {
	want, objects := "combined", 0
	for _, line := range lines {
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
			objects++
		}
	}
	if 2*objects >= len(lines) {
		want = "json"
	}
	for _, f := range formats {
		if f.name == want {
			f.told = true
			return &f
		}
	}
	return nil
}

// unwrapped returns the texts inside the lines that a wrapper fits.
func unwrapped(w *format, lines [][]byte) (inner [][]byte, unwrapper splitter) {
	if w.pattern == "$"+restOfLine {
		return lines, nil
	}
	l := layout{}
	l.wrapIn(w, newUnwrapper(w))
	for _, line := range lines {
		if text, why := l.unwrap(bytes.TrimLeft(line, " \t")); why == "" {
			inner = append(inner, bytes.Clone(text))
		}
	}
	return inner, l.unwrapper
}

func newUnwrapper(w *format) splitter {
	if w.shape == byJSON {
		return newObject([]string{dockerLine})
	}
	p, _ := parsePattern(w.pattern, false)
	return p
}

func (l *layout) wrapIn(w *format, unwrapper splitter) {
	if l.wrapper, l.unwrapper = w, unwrapper; unwrapper == nil {
		return
	}
	l.unwrapped = fmt.Sprintf(whyUnwrapped, w.name)
	l.wrapping, l.lineAt = make([][]byte, 1), 0
	if p, ok := unwrapper.(*pattern); ok {
		l.wrapping, l.lineAt = make([][]byte, len(p.places)), len(p.places)-1
	}
}

// score reads the first lines of a log.
func (l *layout) score(lines [][]byte, wanted []field) (s score) {
	first := l.header
	l.step = time.Second
	for _, line := range lines {
		line = l.trim(line)
		if len(line) == 0 || l.isHeader(line, wanted) {
			continue
		}
		s.lines++
		fits, at, why := l.read(line)
		if why != "" {
			continue
		}
		s.times++
		s.fit -= len(l.values) - fits.found
		if fits.whole && !fits.exact {
			s.fit -= 2
		}
		l.step = min(l.step, at.tells())
		l.zoneless = l.zoneless || at.zoneless
		if fits.whole {
			s.whole++
		}
		if c := l.client(); c.why == "" || c.why == whyClients {
			s.clients++
		}
	}
	if l.format.shape == byFields {
		l.isHeader(first, wanted) // also for lines before it
	}
	return s
}
