package serve

import (
	"log/slog"
	"net/http"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// placePaths are those that envoyproxy/ratelimit serves on its HTTP port, to every machine.
var placePaths = map[string]bool{"/healthcheck": true, "/json": true}

// inPlace returns the handler of the HTTP port. In place of envoyproxy/ratelimit, where every machine may ask, it
// serves only the paths of that program. Callers that identify themselves may ask for the rest.
func (o *portOptions) inPlace(traffic http.Handler) http.Handler {
	if !o.inPlaceOf || o.insecure || o.keys.Required() {
		return traffic
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if placePaths[r.URL.Path] {
			traffic.ServeHTTP(w, r)
			return
		}
		auth.Refuse(w, auth.Denied{Status: http.StatusUnauthorized, Detail: "called as ratelimit, the daemon serves /healthcheck and /json to everyone; the rest needs a token: --tokens FILE names them"})
	})
}

// warnOfPlace says that every machine may ask.
func (o *options) warnOfPlace(log *slog.Logger) {
	if !o.ports.inPlaceOf || o.ports.insecure {
		return
	}
	who := "every machine that can connect"
	if o.ports.keys.Required() {
		who = "callers that show a token or a certificate"
	}
	log.Warn("called as ratelimit, so it stands in the place of envoyproxy/ratelimit and listens where that does", "http", o.http, "grpc", o.ports.envoy.address, "who_may_take", who)
}
