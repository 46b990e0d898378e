package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/testprocess"
)

// A rules file says where to listen, with which certificates, and who may come in. Callers of gRPC show a token or a
// certificate over TLS, as those of HTTP do.
func TestAFileOpensThePortsAndCallersOfGRPCShowWhoTheyAre(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	root := (&authority{t: t}).sign(folder, "ca")
	stranger := (&authority{t: t}).sign(folder, "strange")
	root.sign(folder, "server")
	root.sign(folder, "shop")
	root.sign(folder, "guest")
	stranger.sign(folder, "forged")
	token, form := auth.NewToken()
	reader, readerForm := auth.NewToken()
	in := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens", "web "+form+" take:login\nreader "+readerForm+" metrics\nshop cn:shop take\n")
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(testprocess.FreePort(t)))
	write("weir.yaml", fmt.Sprintf(`
listen:
  http: unix:%s
  grpc: %s
  admin: unix:%s
  tokens: %s
  tls: {cert: %s, key: %s, client_ca: %s}
rules:
  - name: login
    match: {domain: shop, descriptor.path: /login}
    limit: 1000/s
  - name: search
    match: {domain: shop, descriptor.path: /search}
    limit: 1000/s
`, in("http.sock"), address, in("admin.sock"), in("tokens"), in("server.pem"), in("server.key"), in("ca.pem")))
	startDaemon(t, "--config", in("weir.yaml"))
	for _, c := range []struct {
		name, token, certificate, path string
		trusts                         *authority
		want                           codes.Code
	}{
		{"nobody", "", "", "/login", root, codes.Unauthenticated},
		{"a guess", "weir_GUESS", "", "/login", root, codes.Unauthenticated},
		{"a token", token, "", "/login", root, codes.OK},
		{"a token for another rule", token, "", "/search", root, codes.PermissionDenied},
		{"a token for metrics", reader, "", "/login", root, codes.PermissionDenied},
		{"a certificate", "", "shop", "/search", root, codes.OK},
		{"a certificate without scopes", "", "guest", "/search", root, codes.Unauthenticated},
		{"a certificate of another authority", "", "forged", "/search", root, codes.Unauthenticated},
		{"a client that does not trust the daemon", token, "", "/login", stranger, codes.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := clientConfig(t, c.trusts, folder, c.certificate)
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if c.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
			}
			_, err = rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
				Domain: "shop", Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "path", Value: c.path}}}},
			})
			if got := status.Code(err); got != c.want {
				t.Errorf("got %v, want %v (%v)", got, c.want, err)
			}
			if err != nil && c.token != "" && strings.Contains(err.Error(), c.token) {
				t.Errorf("the answer has the token: %v", err)
			}
		})
	}
}
