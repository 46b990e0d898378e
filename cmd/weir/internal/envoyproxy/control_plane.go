package envoyproxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// ControlPlane describes the server that pushes rules, as the environment has it.
type ControlPlane struct {
	Server   string
	NodeID   string
	Metadata map[string]string
	Headers  map[string]string // of the stream

	Secure        bool   // by TLS
	Cert, Key, CA string // files; each may be ""
	Name          string // that the certificate of the server has to have, or "" for that of Server

	Retry             time.Duration // between attempts to connect
	BackoffInitial    time.Duration
	BackoffMax        time.Duration
	BackoffFactor     float64
	BackoffJitter     bool
	MaxMessage        int  // bytes; 0 is the default of gRPC
	Force             bool // FORCE_START_WITHOUT_INITIAL_CONFIG: ready before the first answer
	HealthyOnceLoaded bool // HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: health checks fail before it, nevertheless
}

// controlPlane reads the variables of xDS.
func (v *variables) controlPlane() *ControlPlane {
	c := &ControlPlane{
		Server: v.text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"), NodeID: v.text("CONFIG_GRPC_XDS_NODE_ID", "default"),
		Metadata: v.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "="), Headers: v.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":"),
		Secure: v.flag("CONFIG_GRPC_XDS_SERVER_USE_TLS"),
		Cert:   v.get("CONFIG_GRPC_XDS_CLIENT_TLS_CERT"), Key: v.get("CONFIG_GRPC_XDS_CLIENT_TLS_KEY"),
		CA: v.get("CONFIG_GRPC_XDS_SERVER_TLS_CACERT"), Name: v.get("CONFIG_GRPC_XDS_SERVER_TLS_SAN"),
		Retry:          v.duration("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", 3*time.Second),
		BackoffInitial: v.duration("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", 10*time.Second), BackoffMax: v.duration("XDS_CLIENT_BACKOFF_MAX_INTERVAL", time.Minute),
		BackoffJitter: v.get("XDS_CLIENT_BACKOFF_JITTER") == "" || v.flag("XDS_CLIENT_BACKOFF_JITTER"),
		Force:         v.flag("FORCE_START_WITHOUT_INITIAL_CONFIG"), HealthyOnceLoaded: v.flag("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"),
	}
	var err error
	factor := v.text("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5")
	c.BackoffFactor, err = strconv.ParseFloat(factor, 64)
	v.refuse(err != nil || c.BackoffFactor < 0, "XDS_CLIENT_BACKOFF_RANDOM_FACTOR is %q, want a number of 0 or more", factor)
	size := v.text("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "0")
	c.MaxMessage, err = strconv.Atoi(size)
	v.refuse(err != nil || c.MaxMessage < 0, "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES is %q, want a number of bytes", size)
	v.refuse((c.Cert == "") != (c.Key == "") && c.Secure, "CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY: one is missing")
	return c
}

// pairs reads a list like key=value,key=value.
func (v *variables) pairs(name, sign string) map[string]string {
	pairs := map[string]string{}
	for one := range strings.SplitSeq(v.get(name), ",") {
		if one == "" {
			continue
		}
		key, value, ok := strings.Cut(one, sign)
		v.refuse(!ok || key == "", "%s has %q, want a key and a value with a %s between them", name, one, sign)
		pairs[key] = value
	}
	return pairs
}

// TLS reads the files, and returns the configuration of a connection. Call it for each connection, because certificates are
// renewed.
func (c *ControlPlane) TLS() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.Name, MinVersion: tls.VersionTLS12}
	if c.Cert != "" {
		pair, err := c.pair()
		if err != nil {
			return nil, fmt.Errorf("the certificate for the control plane: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if c.CA == "" {
		return config, nil
	}
	text, err := cli.ReadFile(c.CA, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("the authority of the control plane: %w", err)
	}
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the authority of the control plane: %s has no certificate", c.CA)
	}
	return config, nil
}

// maxPEM bounds the files of certificates and keys.
const maxPEM = 1 << 20

// pair reads the certificate of the daemon for the control plane.
func (c *ControlPlane) pair() (tls.Certificate, error) {
	cert, err := cli.ReadFile(c.Cert, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := cli.ReadFile(c.Key, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
