package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// Hook sends events to a receiver, one after the other, as Standard Webhooks has it: signed, with an identity that stays the same when
// an event is sent again. It follows no redirect. It is safe for concurrent use.
type Hook struct {
	url     string
	secrets [][]byte
	client  *http.Client
	queue   chan *Event
	pause   time.Duration // after the first attempt

	sent, failed, full atomic.Uint64
	drops              decide.RareLog
}

// The bounds of a hook.
const (
	mostEvents   = 1024 // that wait
	mostAttempts = 12   // for one event: some six minutes
	firstPause   = time.Second
	longestPause = time.Minute
	sendTimeout  = 10 * time.Second
	lastTime     = time.Second // for the events that wait when the daemon ends
	minSecret    = 24          // bytes
	maxSecret    = 64
)

// NewHook returns a hook for an address. The secrets are lines of a file: the first one signs, and so do the others, so that a receiver
// can change from one to another.
func NewHook(address, secrets string) (*Hook, error) {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil || to.Fragment != "" {
		return nil, errors.New("notice: the address of the webhook is not an http or https URL without a user")
	}
	h := &Hook{url: address, queue: make(chan *Event, mostEvents), pause: firstPause, client: &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, line := range strings.Fields(secrets) {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, secretForm))
		if err != nil || !strings.HasPrefix(line, secretForm) || len(secret) < minSecret || len(secret) > maxSecret {
			return nil, fmt.Errorf("notice: a secret is not %s and the base64 of %d to %d bytes", secretForm, minSecret, maxSecret)
		}
		h.secrets = append(h.secrets, secret)
	}
	if len(h.secrets) == 0 {
		return nil, errors.New("notice: the file has no secret")
	}
	return h, nil
}

// secretForm is how a secret begins in a file.
const secretForm = "whsec_"

// add queues an event, or counts it as dropped.
func (h *Hook) add(e *Event) {
	select {
	case h.queue <- e:
	default:
		h.full.Add(1)
	}
}

// run sends events until the context ends, and then those that wait, within lastTime and without another attempt.
func (h *Hook) run(ctx context.Context, log *slog.Logger) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, stop) })()
	for {
		select {
		case e := <-h.queue:
			h.deliver(ctx, sending, e, log)
			continue
		default:
		}
		select {
		case e := <-h.queue:
			h.deliver(ctx, sending, e, log)
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends an event, again after failures that may pass. It stops trying when ctx ends.
func (h *Hook) deliver(ctx, sending context.Context, e *Event, log *slog.Logger) {
	pause := h.pause
	for attempt := 1; ; attempt++ {
		err := h.send(sending, e)
		if err == nil {
			h.sent.Add(1)
			return
		}
		refused, _ := errors.AsType[*refusedError](err)
		if attempt == mostAttempts || refused != nil && refused.finally() || ctx.Err() != nil {
			h.failed.Add(1)
			h.drops.Warn(log, "the receiver of --notify does not take an event, which is dropped", "event", e.id, "attempts", attempt, "error", err)
			return
		}
		if attempt == 1 {
			log.Warn("the receiver of --notify does not take an event; trying again", "event", e.id, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, longestPause)
	}
}

// send makes one attempt.
func (h *Hook) send(ctx context.Context, e *Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	r.Header.Set("Webhook-Id", e.id)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", h.sign(e.id, stamp, body))
	answer, err := h.client.Do(r)
	if err != nil {
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err // the address may hold a secret, and is no part of the log
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
	if answer.StatusCode/100 != 2 {
		return &refusedError{answer.StatusCode}
	}
	return nil
}

// sign returns the signatures of a message, one of each secret: the HMAC-SHA256 of its identity, its time and its body.
func (h *Hook) sign(id, stamp string, body []byte) string {
	var all []string
	for _, secret := range h.secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// refusedError is an answer that is not 2xx.
type refusedError struct{ status int }

func (e *refusedError) Error() string {
	if e.status/100 == 3 {
		return fmt.Sprintf("the receiver answered %d, a redirect, which is not followed", e.status)
	}
	return fmt.Sprintf("the receiver answered %d", e.status)
}

// finally reports whether another attempt gets the same answer.
func (e *refusedError) finally() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.status/100 != 5
}
