package envoyproxy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// reading reads an environment of words.
func reading(words string, inPlace bool) (Environment, error) {
	set := map[string]string{}
	for word := range strings.FieldsSeq(words) {
		name, value, _ := strings.Cut(word, "=")
		set[name] = value
	}
	return Read(func(name string) string { return set[name] }, inPlace)
}

func TestTheVariablesOfAControlPlaneHaveTheOriginalsDefaults(t *testing.T) {
	read, err := reading("CONFIG_TYPE=GRPC_XDS_SOTW RUNTIME_ROOT=/data", false)
	want := ControlPlane{Server: "localhost:18000", NodeID: "default", Metadata: map[string]string{}, Headers: map[string]string{}, Retry: 3 * time.Second,
		BackoffInitial: 10 * time.Second, BackoffMax: time.Minute, BackoffFactor: 0.5, BackoffJitter: true}
	if err != nil || !reflect.DeepEqual(*read.ControlPlane, want) || read.Flags["config"] != "" {
		t.Errorf("got %+v, %v and the folder %q, want %+v and no folder", read.ControlPlane, err, read.Flags["config"], want)
	}
	read, err = reading("CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=ai-gateway:18002 CONFIG_GRPC_XDS_NODE_ID=envoy-ai-gateway-ratelimit CONFIG_GRPC_XDS_NODE_METADATA=a=1,b=x=y "+
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=x-one:1,x-two:a:b CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=1s CONFIG_GRPC_XDS_SERVER_USE_TLS=true "+
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/k CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/a CONFIG_GRPC_XDS_SERVER_TLS_SAN=gateway "+
		"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=2s XDS_CLIENT_BACKOFF_MAX_INTERVAL=9s XDS_CLIENT_BACKOFF_RANDOM_FACTOR=1.5 XDS_CLIENT_BACKOFF_JITTER=false XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=1000 "+
		"FORCE_START_WITHOUT_INITIAL_CONFIG=true HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true", false)
	want = ControlPlane{Server: "ai-gateway:18002", NodeID: "envoy-ai-gateway-ratelimit", Metadata: map[string]string{"a": "1", "b": "x=y"}, Headers: map[string]string{"x-one": "1", "x-two": "a:b"},
		Retry: time.Second, Secure: true, Cert: "/c", Key: "/k", CA: "/a", Name: "gateway", BackoffInitial: 2 * time.Second, BackoffMax: 9 * time.Second, BackoffFactor: 1.5,
		MaxMessage: 1000, Force: true, HealthyOnceLoaded: true}
	if err != nil || !reflect.DeepEqual(*read.ControlPlane, want) {
		t.Errorf("got %+v, %v, want %+v", read.ControlPlane, err, want)
	}
}

func TestWrongVariablesOfAControlPlaneAreNamed(t *testing.T) {
	for words, want := range map[string]string{
		"CONFIG_GRPC_XDS_NODE_METADATA=a":                                        `CONFIG_GRPC_XDS_NODE_METADATA has "a", want a key and a value`,
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=:1":                           `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS has ":1", want`,
		"XDS_CLIENT_BACKOFF_MAX_INTERVAL=soon":                                   `XDS_CLIENT_BACKOFF_MAX_INTERVAL is "soon", want a duration`,
		"XDS_CLIENT_BACKOFF_RANDOM_FACTOR=-1":                                    `XDS_CLIENT_BACKOFF_RANDOM_FACTOR is "-1", want a number`,
		"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=4MB":                                   `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES is "4MB", want a number of bytes`,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c": "CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY: one is missing",
	} {
		if _, err := reading("CONFIG_TYPE=GRPC_XDS_SOTW "+words, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", words, err, want)
		}
	}
}

func TestInThePlaceOfTheOriginalTheAddressesAreIts(t *testing.T) {
	for words, want := range map[string]string{
		"": ":8080 :8081 127.0.0.1:6070 ",
		"HOST=10.0.0.1 GRPC_PORT=1 DEBUG_HOST=0.0.0.0 USE_PROMETHEUS=true":           "10.0.0.1:8080 :1 0.0.0.0:6070 :9090",
		"PORT=2 DEBUG_PORT=3 USE_PROMETHEUS=true PROMETHEUS_ADDR=:19001 GRPC_HOST=h": ":2 h:8081 127.0.0.1:3 :19001",
	} {
		read, err := reading(words, true)
		if got := read.Flags["http"] + " " + read.Flags["grpc"] + " " + read.Debug + " " + read.Flags["metrics"]; err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", words, got, err, want)
		}
	}
	if read, _ := reading("", false); read.Debug != "" || read.Flags["http"] != "" || read.Flags["grpc"] != "127.0.0.1:8081" {
		t.Errorf("under another name: got %+v, want loopback and no debug port", read)
	}
}
