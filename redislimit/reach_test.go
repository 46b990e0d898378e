package redislimit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// reaches opens the URL and decides once.
func reaches(t *testing.T, url string) error {
	t.Helper()
	engine, err := Open(url, Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	rule, err := weir.ParseRule("r=token bucket 1000/h")
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Take(t.Context(), rule.For("k", 1))
	return err
}

func TestAServerIsReachedByItsSocketAndAPasswordOfAFile(t *testing.T) {
	dir := t.TempDir()
	socket, password := filepath.Join(dir, "redis.sock"), filepath.Join(dir, "password")
	redistest.Start(t, "unixsocket "+socket).Do("CONFIG", "SET", "requirepass", "hunter2")
	if err := os.WriteFile(password, []byte("hunter2\nand a comment\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_TEST_PASSWORD", "hunter2")
	for _, option := range []string{"password_file=" + password, "password_env=WEIR_TEST_PASSWORD"} {
		if err := reaches(t, "unix://"+socket+"?db=3&"+option); err != nil {
			t.Errorf("%s: %v", option, err)
		}
	}
	err := reaches(t, "unix://"+socket)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Denied {
		t.Errorf("without a password: %v, want it denied", err)
	}
}

// A server has a certificate that its own authority has signed, for a name that is not its address. It requires
// client certificates, too.
func TestAServerOfOnesOwnAuthorityIsReachedByTLS(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	authority := newAuthority(t, dir)
	authority.sign(t, "server", "redis.example")
	authority.sign(t, "client", "weir")
	addr := tlsBefore(t, server.Addr, dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	good := "rediss://" + addr + "?server_name=redis.example&ca=" + in("ca.pem")
	withCert := "&cert=" + in("client.pem") + "&key=" + in("client.key")
	if err := reaches(t, good+withCert); err != nil {
		t.Errorf("with everything: %v", err)
	}
	for what, url := range map[string]string{
		"without a client certificate": good,
		"without the authority":        "rediss://" + addr + "?server_name=redis.example" + withCert,
		"with another name":            "rediss://" + addr + "?server_name=other.example&ca=" + in("ca.pem") + withCert,
	} {
		if err := reaches(t, url+"&timeout=1s"); err == nil {
			t.Errorf("%s: it was reached", what)
		}
	}
}

// tlsBefore listens with TLS and passes connections with a client certificate on to the server.
func tlsBefore(t *testing.T, server, dir string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || !trusted.AppendCertsFromPEM(text) {
		t.Fatal("ca.pem is not readable", err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				if client.(*tls.Conn).Handshake() != nil {
					return
				}
				behind, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(behind, client)
					_ = behind.Close()
				}()
				_, _ = io.Copy(client, behind)
			}()
		}
	}()
	return listener.Addr().String()
}

// authority signs certificates for a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) sign(t *testing.T, file, name string) {
	t.Helper()
	a.issue(t, file, &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

// issue writes the certificate to file.pem and its key to file.key.
func (a *authority) issue(t *testing.T, file string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: file}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file + ".pem": {Type: "CERTIFICATE", Bytes: der}, file + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
