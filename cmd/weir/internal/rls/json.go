package rls

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// httpStatus are the statuses of calls that are not decided.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:  http.StatusBadRequest,
	codes.Unauthenticated:  http.StatusUnauthorized,
	codes.PermissionDenied: http.StatusForbidden,
	codes.Unavailable:      http.StatusServiceUnavailable,
	codes.Internal:         http.StatusInternalServerError,
}

// ServeHTTP answers a call in JSON, for clients that do not speak gRPC, with the statuses of envoyproxy/ratelimit: 200,
// 429 for a refusal, 400 for a call that cannot be decided. An engine that cannot decide is 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // a browser sends any other to any origin
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "rls: this path takes POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	var call service.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(body, &call)
	}
	if err != nil {
		http.Error(w, "rls: the body is not a RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.answer(r.Context(), door.Of(r), &call)
	if err != nil {
		code := httpStatus[status.Code(err)]
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, status.Convert(err).Message(), code)
		return
	}
	var text bytes.Buffer
	written, err := protojson.Marshal(answer)
	if err == nil {
		err = json.Compact(&text, written) // protojson varies its spaces
	}
	if err != nil {
		http.Error(w, "rls: the answer is no JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.OverallCode == service.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(append(text.Bytes(), '\n')) // an error means that the client has gone
}
