package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// request is one request of a call.
type request struct {
	Rule string `json:"rule"`
	Key  string `json:"key"`
	Cost int64  `json:"cost"`
}

// bodyOf encodes a call. It encodes a single request without a list.
func bodyOf(requests ...request) string {
	var body []byte
	if len(requests) == 1 {
		body, _ = json.Marshal(requests[0])
	} else {
		body, _ = json.Marshal(map[string]any{"requests": requests})
	}
	return string(body)
}

// answer is a decision. Durations are nanoseconds.
type answer struct {
	Allowed    bool
	Rule, Key  string
	Limit      int64
	Remaining  int64
	RetryAfter int64
	ResetAfter int64
}

// never is an infinite duration.
const never = math.MaxInt64

func readAnswer(body []byte) (answer, error) {
	var a answer
	var text struct {
		Allowed    bool         `json:"allowed"`
		Rule       string       `json:"rule"`
		Key        string       `json:"key"`
		Limit      int64        `json:"limit"`
		Remaining  int64        `json:"remaining"`
		RetryAfter *json.Number `json:"retry_after"`
		ResetAfter *json.Number `json:"reset_after"`
	}
	if err := json.Unmarshal(body, &text); err != nil {
		return a, fmt.Errorf("not an answer: %w: %.200s", err, body)
	}
	a = answer{Allowed: text.Allowed, Rule: text.Rule, Key: text.Key, Limit: text.Limit, Remaining: text.Remaining}
	var err error
	if a.RetryAfter, err = nanoseconds(text.RetryAfter); err != nil {
		return a, err
	}
	a.ResetAfter, err = nanoseconds(text.ResetAfter)
	return a, err
}

// nanoseconds reads decimal seconds exactly.
func nanoseconds(n *json.Number) (int64, error) {
	if n == nil {
		return never, nil
	}
	whole, part, _ := strings.Cut(n.String(), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(part) > 9 {
		return 0, fmt.Errorf("not seconds in nanoseconds: %s", n)
	}
	rest, err := strconv.ParseInt(part+strings.Repeat("0", 9-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not seconds in nanoseconds: %s", n)
	}
	return seconds*1e9 + rest, nil
}
