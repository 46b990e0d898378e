package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// stalling is a request that sends some bytes of its body, and then nothing until it is closed.
type stalling struct {
	*io.PipeWriter
	answer chan *httptest.ResponseRecorder
}

func stall(f *fixture, sent string) stalling {
	body, write := io.Pipe()
	s := stalling{write, make(chan *httptest.ResponseRecorder, 1)}
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", body) // of unknown size
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		_ = body.Close()
		s.answer <- w
	}()
	_, _ = io.WriteString(write, sent)
	synctest.Wait()
	return s
}

var largest = `{"key":"a","cost":0}` + strings.Repeat(" ", maxBody-100)

func TestSilentBodiesHoldNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, usual)
		for range 1000 {
			defer stall(f, `{"key":`).Close()
		}
		for _, body := range []string{`{"key":"a"}`, largest} {
			s := stall(f, body)
			_ = s.Close()
			if w := <-s.answer; w.Code != http.StatusOK {
				t.Errorf("beside 1000 silent bodies one of %d bytes got %d %s", len(body), w.Code, w.Body)
			}
		}
	})
}

// The server gives a body a time to arrive, and ends its reads with this error.
func TestABodyThatIsTooSlowGets408(t *testing.T) {
	for _, path := range []string{"/v1/take", "/v1/reserve", "/v1/settle"} {
		f := newFixture(t, usual)
		late := io.MultiReader(strings.NewReader(`{"key":`), iotest.ErrReader(&net.OpError{Op: "read", Err: context.DeadlineExceeded}))
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, late))
		checkProblem(t, path, w, fault{status: http.StatusRequestTimeout, field: "body", detail: "body did not arrive in time"})
		if got := w.Header().Get("Connection"); got != "close" {
			t.Errorf("%s: Connection is %q, want close", path, got)
		}
	}
}

func TestLargeBodiesBeyondTheMemoryAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, usual)
		var held []stalling
		var refused *httptest.ResponseRecorder
		for refused == nil {
			s := stall(f, largest)
			select {
			case refused = <-s.answer:
			default:
				held = append(held, s)
			}
			if len(held) > 2*largeBodies/maxBody {
				t.Fatalf("%d bodies of %d bytes are in memory, want at most %d bytes", len(held), len(largest), largeBodies)
			}
		}
		if least := largeBodies/maxBody - 1; len(held) < least {
			t.Errorf("%d bodies of %d bytes were received, want at least %d", len(held), len(largest), least)
		}
		checkProblem(t, "one more", refused, fault{status: http.StatusServiceUnavailable, detail: "too many large bodies are being read; ask again"})
		if got := refused.Header().Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q, want 1", got)
		}
		if w := post(f, "/v1/take", `{"key":"a"}`); w.Code != http.StatusOK {
			t.Errorf("a small body beside them got %d %s", w.Code, w.Body)
		}
		for _, s := range held {
			_ = s.Close()
			if w := <-s.answer; w.Code != http.StatusOK {
				t.Errorf("a body that came to its end got %d %s", w.Code, w.Body)
			}
		}
		if got := f.bodies.held.Load(); got != 0 {
			t.Errorf("when all are answered %d bytes are held, want 0", got)
		}
		if w := post(f, "/v1/take", largest); w.Code != http.StatusOK {
			t.Errorf("a large body afterwards got %d %s", w.Code, w.Body)
		}
	})
}

// What a body says does not depend on its size: a large one, whose memory goes back early, is answered like a small one.
func TestALargeBodyIsAnsweredLikeASmallOne(t *testing.T) {
	small, large := newFixture(t, usual), newFixture(t, usual)
	token := regexp.MustCompile(`"token":"[^"]*"`)
	for _, c := range [][2]string{
		{"take", `{"decisions":[{"key":"a","cost":15},{"key":"a","cost":15},{"key":"b"}]}`},
		{"take", `{"requests":[{"key":"a"},{"key":"b","cost":2}]}`},
		{"take", `{"key":"c","cost":3}`},
		{"peek", `{"decisions":[{"key":"a"},{"key":"b"}]}`},
		{"record", `{"decisions":[{"key":"a"},{"key":"b","cost":2}]}`},
		{"return", `{"decisions":[{"key":"a"},{"key":"b"}]}`},
		{"wait", `{"key":"d","patience":0}`},
		{"reserve", `{"key":"e"}`},
		{"reset", `{"key":"a"}`},
		{"take", `{"attributes":{"client":"192.0.2.1"}}`},
	} {
		want := post(small, "/v1/"+c[0], c[1])
		got := post(large, "/v1/"+c[0], c[1]+strings.Repeat(" ", 5*smallBody))
		if want, got := token.ReplaceAllString(want.Body.String(), ""), token.ReplaceAllString(got.Body.String(), ""); got != want {
			t.Errorf("%s %s: a large body gets %s, a small one %s", c[0], c[1], got, want)
		}
	}
}

func TestBodyOfAClientThatLeftIsNotDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, usual)
		s := stall(f, `{"key":"a"}`) // complete except for the end of the last chunk
		_ = s.CloseWithError(io.ErrUnexpectedEOF)
		if w := <-s.answer; w.Code != http.StatusBadRequest {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if got := post(f, "/v1/peek", `{"key":"a"}`).Body.String(); !strings.Contains(got, `"remaining":20,`) {
			t.Errorf("what a client asked who left was counted: %s", got)
		}
		memory := f.desk.Memory()
		if got := memory.Stats().Rules; len(got) != 0 && got[0].Decisions != 0 {
			t.Errorf("it is a decision in the statistics: %+v", got)
		}
	})
}
