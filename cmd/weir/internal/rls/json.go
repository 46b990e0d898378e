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

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// httpStatus are the statuses of calls that are not decided.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:  http.StatusBadRequest,
	codes.Unauthenticated:  http.StatusUnauthorized,
	codes.PermissionDenied: http.StatusForbidden,
	codes.Unavailable:      http.StatusServiceUnavailable,
	codes.Canceled:         statusLeft,
	codes.DeadlineExceeded: statusLeft,
	codes.Internal:         http.StatusInternalServerError,
}

// statusLeft is the status in metrics of a call whose client has left.
const statusLeft = 499

// The bounds on the memory of calls in JSON, which take a dozen times the memory of their text.
const (
	smallCall = 16 << 10
	mostLarge = 16 // above smallCall at a time
)

// ServeHTTP answers a call in JSON, for clients that do not speak gRPC, with the statuses of envoyproxy/ratelimit: 200,
// 429 for a refusal, 400 for a call that cannot be decided. An engine that cannot decide is 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // a browser sends any other to any origin
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "rls: this path takes POST", http.StatusMethodNotAllowed)
		return
	}
	who := auth.Of(r)
	if !who.Some(auth.Take) {
		fail(w, denied(who, auth.Take, ""))
		return
	}
	text, large, err := s.read(http.MaxBytesReader(w, r.Body, maxCall))
	if large {
		defer s.large.Add(-1)
	}
	var call service.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(text, &call)
	}
	if err == errNoRoom {
		fail(w, err)
		return
	}
	if err != nil {
		http.Error(w, "rls: the body is not a RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.answer(r.Context(), who, &call)
	if err != nil {
		fail(w, err)
		return
	}
	var compact bytes.Buffer
	written, err := protojson.Marshal(answer)
	if err == nil {
		err = json.Compact(&compact, written) // protojson varies its spaces
	}
	if err != nil {
		http.Error(w, "rls: the answer is no JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.OverallCode == service.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(append(compact.Bytes(), '\n')) // an error means that the client has gone
}

var errNoRoom = status.Error(codes.Unavailable, "rls: too many large calls are being read; ask again")

// read reads the text of a call. A large one counts in s.large, also after an error.
func (s *Server) read(body io.Reader) (text []byte, large bool, err error) {
	text, err = io.ReadAll(io.LimitReader(body, smallCall))
	if err != nil || len(text) < smallCall {
		return text, false, err
	}
	if s.large.Add(1) > mostLarge {
		return nil, true, errNoRoom
	}
	rest, err := io.ReadAll(body)
	return append(text, rest...), true, err
}

// fail answers a call that is not decided.
func fail(w http.ResponseWriter, err error) {
	code := httpStatus[status.Code(err)]
	switch code {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
	http.Error(w, status.Convert(err).Message(), code)
}
