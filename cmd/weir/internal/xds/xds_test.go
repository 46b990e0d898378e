package xds

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
)

const testType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// written is a log that tests read.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits until the log has a text.
func (w *written) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(xdstest.Patience); !strings.Contains(w.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log lacks %q:\n%s", text, w)
		}
	}
}

// run runs a client until the test ends. Each push goes to a function.
func run(t *testing.T, server string, o Options) (*Client, *written) {
	t.Helper()
	log := &written{}
	o.Server, o.Node, o.Type, o.Log = server, &core.Node{Id: "weir"}, testType, slog.New(slog.NewTextHandler(log, nil))
	if o.Retry == 0 {
		o.Retry = 20 * time.Millisecond
	}
	if o.Backoff == (Backoff{}) {
		o.Backoff = Backoff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond, Factor: 2}
	}
	c := New(o)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	return c, log
}

// said is a request of a client, with the time at which it came.
type said struct {
	*discovery.DiscoveryRequest
	at time.Time
}

// tell has a control plane send an answer for each request, until there are no more.
func tell(heard chan<- said, answers ...*discovery.DiscoveryResponse) func(xdstest.Stream) error {
	return func(on xdstest.Stream) error {
		for i := 0; ; i++ {
			r, err := on.Recv()
			if err != nil {
				return err
			}
			heard <- said{r, time.Now()}
			if i < len(answers) {
				if err := on.Send(answers[i]); err != nil {
					return err
				}
			}
		}
	}
}

func answer(version, nonce string, values ...string) *discovery.DiscoveryResponse {
	a := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: nonce, TypeUrl: testType}
	for _, v := range values {
		a.Resources = append(a.Resources, &anypb.Any{TypeUrl: testType, Value: []byte(v)})
	}
	return a
}

func next(t *testing.T, from <-chan said) said {
	t.Helper()
	select {
	case r := <-from:
		return r
	case <-time.After(xdstest.Patience):
		t.Fatal("the client says nothing")
		return said{}
	}
}

func TestTheFirstRequestNamesTheNodeAndNoVersion(t *testing.T) {
	heard := make(chan said, 10)
	s := xdstest.Script(t, tell(heard))
	run(t, s.Addr, Options{})
	if r := next(t, heard); r.Node.GetId() != "weir" || r.TypeUrl != testType || r.VersionInfo != "" || r.ResponseNonce != "" || len(r.ResourceNames) > 0 {
		t.Errorf("got %v, want the node, the type, and nothing else", r)
	}
}

func TestRefusalsAreSpacedAndNameTheLastGoodVersion(t *testing.T) {
	heard := make(chan said, 10)
	s := xdstest.Script(t, tell(heard, answer("1", "a", "good"), answer("2", "b", "bad"), answer("2", "c", "bad"), answer("2", "d", "bad"), answer("3", "e", "good")))
	pushes := make(chan string, 10)
	const space = 200 * time.Millisecond
	c, _ := run(t, s.Addr, Options{Backoff: Backoff{Initial: space, Max: space}, Push: func(version string, list []*anypb.Any) string {
		pushes <- version + string(list[0].Value)
		if string(list[0].Value) == "bad" {
			return "it is bad"
		}
		return ""
	}})
	next(t, heard)
	if r := next(t, heard); r.VersionInfo != "1" || r.ResponseNonce != "a" || r.ErrorDetail != nil || r.Node != nil {
		t.Errorf("got %v, want an acknowledgement of version 1", r)
	}
	before := time.Time{}
	for _, nonce := range []string{"b", "c", "d"} {
		r := next(t, heard)
		if r.VersionInfo != "1" || r.ResponseNonce != nonce || r.ErrorDetail.GetMessage() != "it is bad" || r.ErrorDetail.GetCode() != 3 {
			t.Errorf("got %v, want a refusal of %s that names version 1", r, nonce)
		}
		if between := r.at.Sub(before); between < space-5*time.Millisecond {
			t.Errorf("the refusal of %s came %s after the one before, want %s", nonce, between, space)
		}
		before = r.at
	}
	if r := next(t, heard); r.VersionInfo != "3" || r.ErrorDetail != nil {
		t.Errorf("got %v, want an acknowledgement of version 3", r)
	}
	close(pushes)
	var all []string
	for p := range pushes {
		all = append(all, p)
	}
	if got := strings.Join(all, " "); got != "1good 2bad 3good" {
		t.Errorf("pushed %q, want equal bytes once", got)
	}
	if st := c.Status(); st.Accepted != 2 || st.Refused != 3 || !st.Connected {
		t.Errorf("got the status %+v, want 2 accepted and 3 refused", st)
	}
}

func TestAnAnswerOfAnotherTypeIsRefusedAndPushesNothing(t *testing.T) {
	heard := make(chan said, 10)
	other := answer("1", "a", "good")
	other.TypeUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	s := xdstest.Script(t, tell(heard, other))
	_, log := run(t, s.Addr, Options{Push: func(string, []*anypb.Any) string { t.Error("pushed"); return "" }})
	next(t, heard)
	if r := next(t, heard); r.VersionInfo != "" || !strings.Contains(r.ErrorDetail.GetMessage(), `has the type "type.googleapis.com/envoy.config.cluster.v3.Cluster"`) {
		t.Errorf("got %v, want a refusal that names both types", r)
	}
	log.await(t, "an answer of the control plane is refused")
}

// A nonce is what the control plane chose, so an old one, an empty one and one that is repeated are said back as they came.
func TestNoncesAreSaidBackAsTheyCome(t *testing.T) {
	heard := make(chan said, 10)
	s := xdstest.Script(t, tell(heard, answer("2", "7", "x"), answer("1", "3", "y"), answer("3", "", "z"), answer("4", "7", "w")))
	run(t, s.Addr, Options{Push: func(string, []*anypb.Any) string { return "" }})
	next(t, heard)
	for _, want := range []string{"2 7", "1 3", "3 ", "4 7"} {
		if r := next(t, heard); r.VersionInfo+" "+r.ResponseNonce != want {
			t.Errorf("got version and nonce %q, want %q", r.VersionInfo+" "+r.ResponseNonce, want)
		}
	}
}

func TestAPushThatPanicsIsARefusal(t *testing.T) {
	heard := make(chan said, 10)
	s := xdstest.Script(t, tell(heard, answer("1", "a", "x")))
	_, log := run(t, s.Addr, Options{Push: func(string, []*anypb.Any) string { panic("a fault") }})
	next(t, heard)
	if r := next(t, heard); r.ErrorDetail.GetMessage() != "the answer could not be read" {
		t.Errorf("got %v, want a refusal", r)
	}
	log.await(t, "a fault")
}

func TestTheStreamIsOpenedAgainAndAsksForEverything(t *testing.T) {
	heard := make(chan said, 100)
	s := xdstest.Script(t, tell(heard, answer("1", "a", "x")))
	c, log := run(t, s.Addr, Options{Push: func(string, []*anypb.Any) string { return "" }})
	next(t, heard)
	next(t, heard)
	s.Stop()
	log.await(t, "the control plane is away, and the rules in force stay")
	if st := c.Status(); st.Connected || st.Why == "" {
		t.Errorf("got the status %+v, want one without a connection", st)
	}
	s.Again()
	if r := next(t, heard); r.Node.GetId() != "weir" || r.VersionInfo != "" {
		t.Errorf("got %v, want a first request", r)
	}
	if r := next(t, heard); r.VersionInfo != "1" || r.ErrorDetail != nil {
		t.Errorf("got %v, want an acknowledgement", r)
	}
}

func TestMessagesAboveTheBoundEndTheStreamAndNothingElse(t *testing.T) {
	heard := make(chan said, 100)
	s := xdstest.Script(t, tell(heard, answer("1", "a", strings.Repeat("x", 5000))))
	_, log := run(t, s.Addr, Options{MaxMessage: 4000, Push: func(string, []*anypb.Any) string { t.Error("pushed"); return "" }})
	log.await(t, "received message larger than max")
	next(t, heard)
	next(t, heard) // of a stream after it
}

func TestBackoffIsThatOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		Backoff
		attempts int
		random   float64
		want     time.Duration
	}{
		{Backoff{10 * time.Second, time.Minute, 0.5, true}, 0, 0.9, 10 * time.Second}, // its defaults never grow
		{Backoff{10 * time.Second, time.Minute, 0.5, true}, 5, 0.9, 10 * time.Second},
		{Backoff{time.Second, time.Minute, 2, false}, 0, 0, time.Second},
		{Backoff{time.Second, time.Minute, 2, false}, 3, 0, 8 * time.Second},
		{Backoff{time.Second, time.Minute, 2, true}, 3, 0.5, 4500 * time.Millisecond},
		{Backoff{time.Second, time.Minute, 2, false}, 1000, 0, time.Minute},
		{Backoff{time.Minute, time.Second, 2, false}, 1, 0, time.Second},
		{Backoff{0, 0, 0, false}, 1, 0, 200 * time.Millisecond},
	} {
		if got := c.After(c.attempts, c.random); got != c.want {
			t.Errorf("%+v after %d attempts: %s, want %s", c.Backoff, c.attempts, got, c.want)
		}
	}
}

func TestASilentControlPlaneIsNamed(t *testing.T) {
	heard := make(chan said, 10)
	s := xdstest.Script(t, tell(heard))
	log := &written{}
	c := New(Options{Server: s.Addr, Node: &core.Node{Id: "weir"}, Type: testType, Log: slog.New(slog.NewTextHandler(log, nil))})
	c.patience = 10 * time.Millisecond
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	next(t, heard)
	log.await(t, "accepts the stream and says nothing; the rules in force stay")
	if st := c.Status(); !st.Connected {
		t.Errorf("got the status %+v, want a connection", st)
	}
}

// A certificate that ends while the stream is open ends nothing. The next connection fails by it, until the files are renewed.
func TestACertificateThatHasEndedIsNamedAndRenewed(t *testing.T) {
	now := pairs(t)
	serving := &atomic.Pointer[tls.Certificate]{}
	serving.Store(&now.ended)
	secure := credentials.NewTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Load(), nil }})
	heard := make(chan said, 100)
	s := xdstest.Script(t, tell(heard, answer("1", "a", "x")), grpc.Creds(secure))
	_, log := run(t, s.Addr, Options{TLS: func() (*tls.Config, error) { return &tls.Config{RootCAs: now.trusted}, nil }, Push: func(string, []*anypb.Any) string { return "" }})
	log.await(t, "certificate has expired")
	serving.Store(&now.good)
	next(t, heard)
	log.await(t, "connected to the control plane")
}

type certificates struct {
	ended, good tls.Certificate
	trusted     *x509.CertPool
}

// pairs makes a certificate that has ended, and one that has not.
func pairs(t *testing.T) (c certificates) {
	t.Helper()
	c.trusted = x509.NewCertPool()
	for into, ends := range map[*tls.Certificate]time.Time{&c.ended: time.Now().Add(-time.Minute), &c.good: time.Now().Add(time.Hour)} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		form := &x509.Certificate{SerialNumber: big.NewInt(ends.Unix()), NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		*into = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		parsed, _ := x509.ParseCertificate(der)
		c.trusted.AddCert(parsed)
	}
	return c
}
