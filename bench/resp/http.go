package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	weirHTTP   = "`weir serve`, `/v1/take` with `decisions`"
	batchGroup = "HTTP: 16 callers, 100 decisions a call"
	batchName  = weirHTTP + ", " + batchGroup

	takers      = 64
	takesGroup  = "HTTP: 64 connections, one decision a call"
	takeMemory  = "`weir serve`, `/v1/take`"
	takeOnRedis = "`weir serve --engine redis://`, `/v1/take`"
	callsASec   = "calls a second"
)

// takeRows ask for one decision in a call, on the memory engine and on Redis behind a guard.
func takeRows(at map[string]string) (list []measure.Row) {
	for _, s := range []struct{ line, name, redis string }{{takeMemory, "http", ""}, {takeOnRedis, "shared-http", at["redis"]}} {
		list = append(list, measure.Row{Group: takesGroup, Line: s.line, Measure: func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
			return takes(ctx, o, at[s.name], usage{at[s.name+"-pid"], s.redis})
		}})
	}
	return list
}

// takes measures callers with a connection each, which write requests prepared beforehand: a client of net/http takes longer
// than the daemon, and would hide how the engines differ.
func takes(ctx context.Context, o *measure.Options, url string, used usage) (measure.Figures, error) {
	var conns [takers]net.Conn
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		conns[i] = conn
	}
	return asking(ctx, o, takers, 1, used, func(caller int) func(context.Context) error {
		requests, in, i := takeRequests(caller), bufio.NewReader(conns[caller]), 0
		return func(context.Context) error {
			i++
			if _, err := conns[caller].Write(requests[i%len(requests)]); err != nil {
				return err
			}
			return taken(in)
		}
	})
}

// takeRequests are the requests of a caller.
func takeRequests(caller int) (all [][]byte) {
	drawn := workload.Uniform(keys, 64, uint64(caller))
	for i := range drawn.Len() {
		body := fmt.Sprintf(`{"rule":"user","key":%q}`, drawn.Key(i))
		all = append(all, fmt.Appendf(nil, "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	return all
}

// taken reads an answer, which has to be an admission by the limit.
func taken(in *bufio.Reader) error {
	var length int
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	body, err := in.Peek(length)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(body, []byte(`{"allowed":true,`)) || !bytes.Contains(body, []byte(`"limit":1000000,`)) {
		return fmt.Errorf("answer %q, want an admission by the limit", body)
	}
	_, err = in.Discard(length)
	return err
}

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
