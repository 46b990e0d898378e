package obey

import "github.com/weirflow/weir/httplimit/internal/announce"

// Tokens are the tokens of a request to a language model: all of them, those of the input, and those of the output. These are
// the indexes of tokenIndex.
type Tokens [3]int64

// MostTokens bounds each number of Tokens, so that sums of them do not overflow.
const MostTokens = 1_000_000_000_000

// NewTokens returns Tokens within the bounds. Negative numbers become 0.
func NewTokens(all, input, output int64) Tokens {
	tokens := Tokens{all, input, output}
	for i := range tokens {
		tokens[i] = min(max(tokens[i], 0), MostTokens)
	}
	return tokens
}

// Max returns the larger of each number.
func (t Tokens) Max(other Tokens) Tokens {
	for i := range t {
		t[i] = max(t[i], other[i])
	}
	return t
}

func (t *Tokens) add(more *Tokens) {
	for i := range t {
		t[i] += more[i]
	}
}

// tokenIndex returns the index of a unit in Tokens. It is false if the unit is not of tokens.
func tokenIndex(unit announce.Unit) (i int, ok bool) {
	i = int(unit) - int(announce.Tokens)
	return i, i >= 0 && i < len(Tokens{})
}

// tokenSums are the tokens of all requests of a state so far.
type tokenSums struct {
	sent     Tokens // the estimates of the requests that were sent
	answered Tokens // the estimates of those that were answered
	over     Tokens // what answers used above their estimates
}

// since returns the tokens of index i that requests other than the reporter may have used after the server counted its
// remainder, and those that the answers which have ended since the reporter was sent used above their estimates.
func (s *tokenSums) since(reporter *Ticket, i int) int64 {
	other := s.sent[i] - reporter.tokens.answered[i] - reporter.Need.Tokens[i]
	return other + s.over[i] - reporter.tokens.over[i]
}

// settle replaces the estimate of a request by its usage.
func (s *State) settle(t Ticket, used *Tokens) {
	for i := range used {
		more := used[i] - t.Need.Tokens[i]
		if more >= 0 {
			s.tokens.over[i] += more
			continue
		}
		for j := range s.quotas {
			if q := &s.quotas[j]; q.holds(t, i) {
				q.back -= more
			}
		}
	}
}

// holds reports whether the quota counts tokens of index i, and counts the estimate of the request against its last remainder.
// The server may have counted an earlier request, or the reporter, in the remainder, and may not correct that.
func (q *quota) holds(t Ticket, i int) bool {
	counted, ok := tokenIndex(q.unit)
	return ok && counted == i && q.remaining >= 0 && t.seq != q.reporter.seq && t.order > q.reporter.answered
}
