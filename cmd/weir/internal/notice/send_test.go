package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var testSecrets = []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("the first secret of 24 b")), "whsec_" + base64.StdEncoding.EncodeToString([]byte("another one with 32 bytes or more"))}

// receiver is a webhook that answers with statuses, and 204 after them.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	got      []*http.Request
	bodies   []string
}

func receive(t *testing.T, statuses ...int) *receiver {
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.bodies = append(r.got, q), append(r.bodies, string(body))
		status := http.StatusNoContent
		if len(r.statuses) > 0 {
			status, r.statuses = r.statuses[0], r.statuses[1:]
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func testHook(t *testing.T, address string) *Hook {
	t.Helper()
	h, err := NewHook(address, strings.Join(testSecrets, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	h.pause = time.Millisecond
	return h
}

func testEvent(id string) *Event {
	key := "alice"
	return &Event{Type: eventType, id: id, key: key, Data: Data{Rule: "api", Key: &key, Limit: "quota 10/day", Percent: 80, Used: 8, Units: 10}}
}

// drain sends what is queued.
func drain(h *Hook) {
	ctx, end := context.WithCancel(context.Background())
	want := h.sent.Load() + h.failed.Load() + uint64(len(h.queue))
	done := make(chan struct{})
	go func() { defer close(done); h.run(ctx, slog.New(slog.DiscardHandler)) }()
	for h.sent.Load()+h.failed.Load() < want {
		time.Sleep(time.Millisecond)
	}
	end()
	<-done
}

// A receiver that fails twice gets the event three times, under one identity, signed by each secret.
func TestAReceiverThatFailsTwiceGetsTheEvent(t *testing.T) {
	r := receive(t, 500, 429)
	h := testHook(t, r.URL+"/hook")
	h.add(testEvent("msg_1"))
	drain(h)
	if len(r.got) != 3 || h.sent.Load() != 1 || h.failed.Load() != 0 {
		t.Fatalf("%d requests, %d sent, %d failed, want 3, 1 and 0", len(r.got), h.sent.Load(), h.failed.Load())
	}
	for i, q := range r.got {
		id, stamp := q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp")
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || id != "msg_1" || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute || q.URL.Path != "/hook" || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("request %d: %s %v", i, q.URL, q.Header)
		}
		signatures := strings.Fields(q.Header.Get("Webhook-Signature"))
		for j, secret := range testSecrets {
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
			mac := hmac.New(sha256.New, key)
			_, _ = io.WriteString(mac, id+"."+stamp+"."+r.bodies[i])
			if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); len(signatures) != 2 || signatures[j] != want {
				t.Errorf("request %d: signatures %q, want %s as number %d", i, signatures, want, j+1)
			}
		}
		var event Event
		if err := json.Unmarshal([]byte(r.bodies[i]), &event); err != nil || event.Type != "quota.reached" || event.Data.Percent != 80 || *event.Data.Key != "alice" {
			t.Errorf("request %d: %s, %v", i, r.bodies[i], err)
		}
	}
}

// What no attempt can mend is dropped at once and counted, redirects among them; other failures after mostAttempts.
func TestWhatAReceiverRefusesIsCounted(t *testing.T) {
	for status, attempts := range map[int]int{301: 1, 302: 1, 307: 1, 308: 1, 400: 1, 404: 1, 410: 1, 503: mostAttempts} {
		var statuses []int
		for range mostAttempts {
			statuses = append(statuses, status)
		}
		r := receive(t, statuses...)
		h := testHook(t, r.URL)
		h.pause = time.Microsecond
		h.add(testEvent("msg_1"))
		drain(h)
		if len(r.got) != attempts || h.sent.Load() != 0 || h.failed.Load() != 1 {
			t.Errorf("status %d: %d requests, %d sent, %d failed, want %d, 0 and 1", status, len(r.got), h.sent.Load(), h.failed.Load(), attempts)
		}
		for _, q := range r.got {
			if q.URL.Path == "/elsewhere" {
				t.Errorf("status %d: the hook followed a redirect", status)
			}
		}
	}
}

// Events beyond the queue are dropped and counted, and nobody waits for the receiver.
func TestEventsBeyondTheQueueAreCounted(t *testing.T) {
	h := testHook(t, "http://127.0.0.1:1")
	for i := range mostEvents + 7 {
		h.add(testEvent(fmt.Sprint("msg_", i)))
	}
	if h.full.Load() != 7 || len(h.queue) != mostEvents {
		t.Errorf("%d are dropped and %d wait, want 7 and %d", h.full.Load(), len(h.queue), mostEvents)
	}
}

// At the end of the daemon, events that wait are tried once, and a receiver that hangs holds it up for lastTime.
func TestTheEndWaitsForNoReceiver(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hangs)
	h := testHook(t, server.URL)
	for i := range 5 {
		h.add(testEvent(fmt.Sprint("msg_", i)))
	}
	ctx, end := context.WithCancel(context.Background())
	end()
	began := time.Now()
	h.run(ctx, slog.New(slog.DiscardHandler))
	if took := time.Since(began); took > lastTime+5*time.Second || h.failed.Load() != 5 {
		t.Errorf("the end took %v, and %d events failed, want about %v and 5", took, h.failed.Load(), lastTime)
	}
}

func TestAHookRefusesAddressesAndSecrets(t *testing.T) {
	for _, address := range []string{"", "example.org", "ftp://example.org", "https://", "https://u:p@example.org", "https://example.org/#a", "http://a b"} {
		if _, err := NewHook(address, testSecrets[0]); err == nil {
			t.Errorf("address %q is taken", address)
		}
	}
	for _, secrets := range []string{"", "\n", "secret", "whsec_", "whsec_!", "whsec_c2hvcnQ=", strings.TrimPrefix(testSecrets[0], "whsec_"), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), testSecrets[0] + "\nx"} {
		_, err := NewHook("https://example.org", secrets)
		if err == nil {
			t.Errorf("secrets %q are taken", secrets)
		} else if len(secrets) > 10 && strings.Contains(err.Error(), secrets[6:10]) {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}
