package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	weirHTTP   = "`weir serve`, `/v1/take` with `decisions`"
	batchGroup = "HTTP: 16 callers, 100 decisions a call"
	batchName  = weirHTTP + ", " + batchGroup
)

// batchRow asks for many decisions in one call over HTTP.
func batchRow(at map[string]string) measure.Row {
	url := at["http"] + "/v1/take"
	return measure.Row{Group: batchGroup, Line: weirHTTP, Measure: func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
		defer client.CloseIdleConnections()
		return asking(ctx, o, 16, many, usage{pid: at["http-pid"]}, func(caller int) func(context.Context) error {
			bodies, i := batches(caller), 0
			return func(ctx context.Context) error {
				i++
				return take(ctx, client, url, bodies[i%len(bodies)])
			}
		})
	}}
}

// batches are the bodies of a caller.
func batches(caller int) (bodies [][]byte) {
	type decision struct {
		Rule string `json:"rule"`
		Key  string `json:"key"`
	}
	drawn := workload.Uniform(keys, 64*many, uint64(caller))
	for i := range 64 {
		var body struct {
			Decisions []decision `json:"decisions"`
		}
		for j := range many {
			body.Decisions = append(body.Decisions, decision{"user", drawn.Key(i*many + j)})
		}
		text, _ := json.Marshal(body) // it holds only texts
		bodies = append(bodies, text)
	}
	return bodies
}

func take(ctx context.Context, client *http.Client, url string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	w, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	if err == nil && bytes.Count(text, []byte(`"allowed":true`)) != many {
		return fmt.Errorf("answer %d %.200s, want %d admissions", w.StatusCode, text, many)
	}
	return err
}
