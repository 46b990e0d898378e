package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/gatewaytest"
)

// The overlay of the page stands in place of the limit that Envoy Gateway pushes, in its pod, and a budget of three ends with the third
// request. The variables for the live page ask there for a token, and Envoy for none.
func TestTheBudgetOfThePageOfEnvoyGatewayIsMet(t *testing.T) {
	t.Parallel()
	var overlay struct {
		Data map[string]string `yaml:"data"`
	}
	if err := yaml.Unmarshal([]byte(gatewaytest.Documented(t, "kubernetes/overlay").Text), &overlay); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	writeFile(t, in("weir.yaml"), replaceAll(t, overlay.Data["weir.yaml"], map[string]string{"quota 1000000/month": "quota 3/month"}))
	token, form := auth.NewToken()
	writeFile(t, in("tokens"), "ops "+form+" admin metrics\n")
	(&authority{t: t}).sign(folder, "ca").sign(folder, "server")
	pair, err := tls.LoadX509KeyPair(in("server.pem"), in("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(in("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	plane := xdstest.Start(t, "envoy-ratelimit", grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert})))
	plane.Push("1", gatewayListener("default/eg/http", 1_000_000))
	admin := loopback(t)
	d := startInPlace(t, plane.Addr, secretVolume(t, folder), "WEIR_OVERLAY="+in("weir.yaml"), "WEIR_ADMIN="+admin, "WEIR_TOKENS="+in("tokens"), "WEIR_INSECURE=true")
	plane.Accepted("1")

	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", d.ports["grpc"]), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: authorities, ServerName: "127.0.0.1"})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	d.RateLimitServiceClient = rls.NewRateLimitServiceClient(conn)
	d.want("a budget of 3 a month", d.codes(4, "default/eg/http", "backend", "shop"), "OK OK OK OVER_LIMIT")
	d.want("the budget of another tenant", d.codes(1, "default/eg/http", "backend", "bank"), "OK")

	for shown, status := range map[string]int{"": http.StatusUnauthorized, token: http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:"+admin[strings.LastIndexByte(admin, ':')+1:]+"/v1/admin/rules", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+shown)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("the admin port, for %.8q: %d, want %d", shown, response.StatusCode, status)
		}
	}
}
