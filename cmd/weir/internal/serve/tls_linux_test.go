package serve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/testprocess"
)

// authority signs certificates of tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign writes a certificate with its key as NAME.pem and NAME.key. Without a signer it is that of an authority.
func (a *authority) sign(folder, name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"limits.example.org"}, IsCA: a.cert == nil, BasicConstraintsValid: true,
	}
	signer, by := template, key
	if a.cert != nil {
		signer, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	secret, _ := x509.MarshalPKCS8PrivateKey(key)
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return &authority{a.t, cert, key}
}

// httpsClient trusts an authority, and may show a certificate.
func httpsClient(t *testing.T, trusted *authority, folder, own string) *http.Client {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: clientConfig(t, trusted, folder, own)}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func clientConfig(t *testing.T, trusted *authority, folder, own string) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.cert)
	config := &tls.Config{RootCAs: roots}
	if own != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, own+".pem"), filepath.Join(folder, own+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// statusOf asks with a token.
func statusOf(t *testing.T, client *http.Client, url, token, body string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(auth.RequestHeader, "test")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	text, _ := io.ReadAll(w.Body)
	if token != "" && bytes.Contains(text, []byte(token)) {
		t.Errorf("%s: the answer has the token: %s", url, text)
	}
	return w.StatusCode
}

// Callers show a token or a certificate over TLS, at every port, and files that change count within seconds.
func TestCallersShowWhoTheyAre(t *testing.T) {
	folder := t.TempDir()
	root := (&authority{t: t}).sign(folder, "ca")
	root.sign(folder, "server")
	root.sign(folder, "shop")
	token, form := auth.NewToken()
	boss, bossForm := auth.NewToken()
	file := filepath.Join(folder, "tokens")
	write := func(lines ...string) {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("web "+form+" take:login", "boss "+bossForm+" admin metrics", "shop cn:shop take dynamic")
	free := func() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(testprocess.FreePort(t))) }
	admin, redis, metrics := free(), free(), free()
	in := func(name string) string { return filepath.Join(folder, name) }
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--admin", admin, "--pprof", "--resp", redis, "--metrics", metrics, "--rule", "login=5/m", "--rule", "other=5/m",
		"--tokens", file, "--tls-cert", in("server.pem"), "--tls-key", in("server.key"), "--tls-client-ca", in("ca.pem"))
	var log lockedText
	cmd.Stderr = &log
	t.Cleanup(func() {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("weir serve ended with %v: %s", err, log.String())
		}
		if text := log.String(); strings.Contains(text, token) || strings.Contains(text, boss) {
			t.Errorf("the log has a token:\n%s", text)
		}
	})
	url := startAndFindURL(t, cmd)
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("the daemon announces %s", url)
	}
	anyone, shop := httpsClient(t, root, folder, ""), httpsClient(t, root, folder, "shop")
	const login, other = `{"rule":"login","key":"k"}`, `{"rule":"other","key":"k"}`
	for _, c := range []struct {
		client     *http.Client
		url, token string
		body       string
		want       int
	}{
		{anyone, url + "/v1/take", "", login, 401}, {anyone, url + "/v1/take", "weir_GUESS", login, 401}, {anyone, url + "/v1/take", token, login, 200},
		{anyone, url + "/v1/take", token, other, 403}, {anyone, url + "/v1/reset", token, login, 403}, {anyone, url + "/v1/return", token, login, 403},
		{shop, url + "/v1/take", "", other, 200}, {shop, url + "/v1/reset", "", other, 403}, {anyone, url + "/v1/reset", boss, login, 200},
		{anyone, url + "/v1/take", boss, login, 403}, {anyone, "https://" + admin + "/v1/reset", "", login, 401}, {anyone, "https://" + admin + "/v1/reset", token, login, 403},
		{anyone, "https://" + admin + "/v1/reset", boss, login, 200},
		{anyone, "https://" + admin + "/v1/admin/drain", token, "{}", 403}, {shop, "https://" + admin + "/v1/admin/override", "", "{}", 403},
	} {
		if got := statusOf(t, c.client, c.url, c.token, c.body); got != c.want {
			t.Errorf("%s %s with token %.9s: got %d, want %d", c.url, c.body, c.token, got, c.want)
		}
	}
	for _, at := range []string{metrics + "/metrics", admin + "/metrics", admin + "/v1/top", admin + "/v1/admin/rules", admin + "/v1/admin/overrides", admin + "/debug/pprof/cmdline"} {
		for shown, want := range map[string]int{"": 401, token: 403, boss: 200} {
			r, _ := http.NewRequest(http.MethodGet, "https://"+at, nil)
			r.Header.Set("Authorization", "Bearer "+shown)
			if w, err := anyone.Do(r); err != nil || w.StatusCode != want {
				t.Errorf("%s with token %.9s: got %v, %v, want %d", at, shown, w, err, want)
			} else {
				_ = w.Body.Close()
			}
		}
	}
	_, port, _ := net.SplitHostPort(redis)
	for shown, want := range map[string]string{token: "1 5 ", "weir_GUESS": "WRONGPASS"} {
		out, _ := exec.Command("redis-cli", "-p", port, "--tls", "--cacert", in("ca.pem"), "--no-auth-warning", "-a", shown, "WEIR.TAKE", "login", "redis").CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); !strings.Contains(got, want) {
			t.Errorf("redis-cli with token %.9s printed %q, want %q", shown, got, want)
		}
	}
	// A wait reads ahead, and a connection over TLS goes on behind it.
	waits := exec.Command("redis-cli", "-p", port, "--tls", "--cacert", in("ca.pem"), "--no-auth-warning", "-a", token)
	waits.Stdin = strings.NewReader("WEIR.WAIT 1 login redis\nPING\n")
	if out, err := waits.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "1\n5\n") || !strings.HasSuffix(string(out), "\nPONG\n") {
		t.Errorf("a wait and a ping got %q, %v", out, err)
	}
	write("this is no line") // the tokens in use stay
	waitForLog(t, &log, "stay: a file has a problem")
	if got := statusOf(t, anyone, url+"/v1/take", token, login); got != 200 {
		t.Errorf("after a bad reload the token got %d", got)
	}
	shown := func() string {
		r, _ := http.NewRequest(http.MethodGet, "https://"+metrics+"/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+boss)
		w, err := anyone.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Body.Close() }()
		text, _ := io.ReadAll(w.Body)
		return string(text)
	}
	ends := regexp.MustCompile(`weir_certificate_expiry_timestamp_seconds\{flag="tls-c(?:ert|lient-ca)"\} \d`)
	if text := shown(); !strings.Contains(text, "weir_credentials_reload_failing 1") || len(ends.FindAllString(text, -1)) != 2 {
		t.Errorf("the metrics do not say that a file has a problem, or when certificates end:\n%s", text)
	}
	write("boss " + bossForm + " admin metrics")
	waitForLog(t, &log, "tokens and certificates reloaded")
	if got := statusOf(t, anyone, url+"/v1/take", token, login); got != 401 {
		t.Errorf("a token that is gone got %d", got)
	}
	if text := shown(); !strings.Contains(text, "weir_credentials_reload_failing 0") {
		t.Errorf("the metrics still say that a file has a problem:\n%s", text)
	}
}

// Without tokens a certificate of the authority is what lets callers in, for everything but admin.
func TestAnAuthorityAloneLetsItsCertificatesIn(t *testing.T) {
	folder := t.TempDir()
	root := (&authority{t: t}).sign(folder, "ca")
	root.sign(folder, "server")
	root.sign(folder, "shop")
	strange := t.TempDir()
	(&authority{t: t}).sign(strange, "ca").sign(strange, "shop")
	in := func(name string) string { return filepath.Join(folder, name) }
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--rule", "login=5/m", "--tls-cert", in("server.pem"), "--tls-key", in("server.key"), "--tls-client-ca", in("ca.pem"))
	t.Cleanup(func() { _ = stopDaemon(cmd) })
	url := startAndFindURL(t, cmd)
	const login = `{"rule":"login","key":"k"}`
	shop := httpsClient(t, root, folder, "shop")
	for path, want := range map[string]int{"/v1/take": 200, "/v1/return": 200, "/v1/reset": 403} {
		if got := statusOf(t, shop, url+path, "", login); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
	for name, client := range map[string]*http.Client{"none": httpsClient(t, root, folder, ""), "another authority": httpsClient(t, root, strange, "shop")} {
		if w, err := client.Post(url+"/v1/take", "application/json", strings.NewReader(login)); err == nil {
			_ = w.Body.Close()
			t.Errorf("with a certificate of %s: got %s, want no connection", name, w.Status)
		}
	}
}

func waitForLog(t *testing.T, log *lockedText, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(log.String(), text); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log never said %q:\n%s", text, log.String())
		}
	}
}
