package resp

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// appendInteger and its kin write values in RESP2. RESP3 differs from it only in maps here.
func appendInteger(b []byte, n int64) []byte {
	b = append(b, ':')
	b = strconv.AppendInt(b, n, 10)
	return append(b, "\r\n"...)
}

func appendHead(b []byte, kind byte, n int) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}

func appendBulk(b []byte, s string) []byte {
	b = appendHead(b, '$', len(s))
	b = append(b, s...)
	return append(b, "\r\n"...)
}

// appendLine writes a simple string (+) or an error (-). It always has one line.
func appendLine(b []byte, kind byte, s string) []byte {
	b = append(b, kind)
	b = append(b, oneLine.Replace(s)...)
	return append(b, "\r\n"...)
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func appendIntegers(b []byte, numbers ...int64) []byte {
	b = append(b, '*', '0'+byte(len(numbers)), '\r', '\n') // up to nine
	for _, n := range numbers {
		b = appendInteger(b, n)
	}
	return b
}

// A format is how a decision is written.
type format uint8

const (
	asDecision format = iota // of WEIR commands
	asCell                   // of CL.THROTTLE
)

// appendDecision writes an array of five or six integers.
func appendDecision(b []byte, f format, d weir.Decision) []byte {
	if f == asDecision {
		if !decide.Limited(d) {
			d.Limit, d.Remaining = -1, -1
		}
		return appendIntegers(b, number(d.Allowed), d.Limit, d.Remaining, in(time.Millisecond, d.RetryAfter, 1),
			in(time.Millisecond, d.ResetAfter, 1), in(time.Millisecond, d.Delay, 1))
	}
	retry := int64(-1)
	if !d.Allowed {
		retry = in(time.Second, d.RetryAfter, time.Millisecond)
	}
	return appendIntegers(b, number(!d.Allowed), d.Limit, d.Remaining, retry, in(time.Second, d.ResetAfter, time.Millisecond))
}

// in returns a duration in units, rounded up if the rest has at least so much, and -1 for Never.
func in(unit, d, least time.Duration) int64 {
	if d == weir.Never {
		return -1
	}
	return int64(d/unit) + number(d%unit >= least)
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
