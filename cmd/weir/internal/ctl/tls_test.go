package ctl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair writes NAME.pem and NAME.key of a certificate that signs itself, and returns it.
func pair(t *testing.T, folder, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := x509.MarshalPKCS8PrivateKey(key)
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, _ := x509.ParseCertificate(der)
	return certificate
}

func TestACallOverTLSTrustsAndShowsTheCertificatesOfItsFlags(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	pair(t, folder, "daemon")
	pair(t, folder, "stranger")
	callers := x509.NewCertPool()
	callers.AddCert(pair(t, folder, "me"))
	shown, err := tls.LoadX509KeyPair(in("daemon.pem"), in("daemon.key"))
	if err != nil {
		t.Fatal(err)
	}
	daemon := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{}`)) }))
	daemon.TLS = &tls.Config{Certificates: []tls.Certificate{shown}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: callers}
	daemon.StartTLS()
	defer daemon.Close()
	address := daemon.Listener.Addr().String()
	if err := os.WriteFile(in("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client Client
		want   string // in the error
	}{
		"all":                         {Client{Address: address, CA: in("daemon.pem"), Cert: in("me.pem"), Key: in("me.key")}, ""},
		"a URL":                       {Client{Address: "https://" + address + "/", CA: in("daemon.pem"), Cert: in("me.pem"), Key: in("me.key")}, ""},
		"no authority":                {Client{Address: address, Cert: in("me.pem"), Key: in("me.key")}, "unknown authority"},
		"another authority":           {Client{Address: address, CA: in("stranger.pem"), Cert: in("me.pem"), Key: in("me.key")}, "unknown authority"},
		"no certificate":              {Client{Address: address, CA: in("daemon.pem")}, "certificate required"},
		"a stranger":                  {Client{Address: address, CA: in("daemon.pem"), Cert: in("stranger.pem"), Key: in("stranger.key")}, "certificate"},
		"another key":                 {Client{Address: address, CA: in("daemon.pem"), Cert: in("me.pem"), Key: in("stranger.key")}, "does not match"},
		"a certificate without a key": {Client{Address: address, CA: in("daemon.pem"), Cert: in("me.pem")}, "--cert and --key: one is missing"},
		"no file of authorities":      {Client{Address: address, CA: in("nosuch.pem")}, "--ca: open"},
		"an empty one":                {Client{Address: address, CA: in("empty")}, "has no certificate in PEM"},
		"a port without TLS":          {Client{Address: "http://" + address, CA: in("daemon.pem")}, "connections to it are not encrypted"},
		"a socket":                    {Client{Address: "unix:weir.sock", CA: in("daemon.pem")}, "a socket is not encrypted"},
	} {
		var answer struct{}
		err := c.client.Call(t.Context(), http.MethodGet, "/v1/admin/rules", nil, &answer)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}
