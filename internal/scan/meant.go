package scan

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// known rewrites the words of other limiters and of English, in lower case. An empty word is left out.
var known = map[string]string{
	"second": "s", "seconds": "s", "sec": "s", "secs": "s", "minute": "m", "minutes": "m", "min": "m", "mins": "m",
	"hour": "h", "hours": "h", "hr": "h", "hrs": "h", "day": "d", "days": "d", "week": "w", "weeks": "w",
	"millisecond": "ms", "milliseconds": "ms", "msec": "ms",
	"per": "/", "every": "/", "each": "/", "a": "/", "an": "/", "in": "/",
	"rps": "/ s", "qps": "/ s", "tps": "/ s", "rpm": "/ m", "qpm": "/ m", "rph": "/ h", "rpd": "/ d",
	"r": "", "req": "", "reqs": "", "request": "", "requests": "", "calls": "", "hits": "", "times": "",

	"gcra": "token bucket", "leaking": "leaky", "rolling": "sliding", "semaphore": "concurrency", "bulkhead": "concurrency",
	"guava": "bursty", "smooth": "", "warming": "warm", "warmup": "warm up",
	"tokenbucket": "token bucket", "leakybucket": "leaky bucket", "fixedwindow": "fixed window", "firstwindow": "first window",
	"slidingwindow": "sliding window", "slidinglog": "sliding log", "rategate": "rate gate",
	",": "and", ";": "and", "&": "and", "+": "and",
}

// own are words of limits that a misspelt word may have meant, besides the known ones.
var own = strings.Fields("token bucket leaky fixed sliding window rate gate cycle concurrency unlimited deny bursty warm " +
	"burst queue nodelay count denied origin from first use lease over cold")

// units and timed are the units of a duration, and the words before a duration.
var units, timed = strings.Fields("ns us ms s m h d w"), strings.Fields("gap origin lease over")

// ends complete a text: a count alone is a count per second, as other limiters have it, and Guava stores for 1s.
var ends = []string{"", "/s", " over 1s", "/s over 1s", " 10/s", " 5/s over 1s"}

// Meant returns the text that was probably meant by a text that is no limit, or "" without a guess that reads accepts.
func Meant(text string, reads func(string) bool) string {
	const longest = 200 // bytes; a longer text is not worth a guess
	if len(text) > longest {
		return ""
	}
	if guess := meantQuota(text); guess != "" && reads(guess) {
		return guess
	}
	guess := joined(rewritten(text))
	for _, end := range ends {
		if guess != "" && reads(guess+end) {
			return guess + end
		}
	}
	return ""
}

// rewritten returns the words of a text as limits have them: letters or digits, or a slash.
func rewritten(text string) (words []string) {
	for _, word := range split(text) {
		meant, ok := known[word]
		if !ok {
			meant = spelt(word)
		}
		words = append(words, strings.Fields(meant)...)
	}
	return words
}

// split cuts a text between letters and digits, at an upper case letter behind a lower case one, and at signs. It keeps
// only signs that have a meaning.
func split(text string) (words []string) {
	var last rune
	for _, r := range text {
		lower := string(unicode.ToLower(r))
		switch {
		case strings.ContainsRune("/,;&+", r):
			words = append(words, lower)
		case !wordy(r):
		case wordy(last) && unicode.IsLetter(r) == unicode.IsLetter(last) && !(unicode.IsUpper(r) && unicode.IsLower(last)):
			words[len(words)-1] += lower
		default:
			words = append(words, lower)
		}
		last = r
	}
	return words
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' }

// joined writes words as a text, where a number, a slash and a unit are one word.
func joined(words []string) string {
	var out []string
	for i, word := range words {
		last := ""
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		isUnit, afterNumber := slices.Contains(units, word), last != "" && endsInDigit(last)
		switch {
		case word == "/" && afterNumber, strings.HasSuffix(last, "/"), // 10 / s
			afterNumber && isUnit && (strings.Contains(last, "/") || i > 1 && slices.Contains(timed, words[i-2])), // 5/10 s
			endsInDigit(word) && last != "" && last[0] <= '9' && !afterNumber:                                     // 1/1h 30 m
			out[len(out)-1] += word
		case afterNumber && isUnit: // 5-M
			out[len(out)-1] += "/" + word
		default:
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

func endsInDigit(word string) bool { last := word[len(word)-1]; return '0' <= last && last <= '9' }

// spelt returns the word of limits that differs from a word by one letter or two swapped letters, or the word itself.
func spelt(word string) string {
	if len(word) < 4 || slices.Contains(own, word) {
		return word
	}
	for _, right := range append(slices.Sorted(maps.Keys(known)), own...) {
		if len(right) > 3 && nearly(word, right) {
			if meant, ok := known[right]; ok {
				return meant
			}
			return right
		}
	}
	return word
}

func nearly(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) < 2 && len(b) < 2 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
