package ctl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// encrypts reports whether a flag asks for TLS.
func (c *Client) encrypts() bool { return c.CA != "" || c.Cert != "" || c.Key != "" }

// reachTCP returns an HTTP client of an address, and the beginning of its URLs.
func (c *Client) reachTCP(address string) (*http.Client, string, error) {
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if c.encrypts() {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, "", cli.Misusef("an address is unix:PATH, HOST:PORT or https://HOST:PORT", "--admin %s: not an address", cli.Printable(c.Address))
	case !c.encrypts():
		return &http.Client{}, strings.TrimSuffix(address, "/"), nil
	case u.Scheme == "http":
		return nil, "", cli.Misusef("name it as https://HOST:PORT, or leave the certificates out", "--admin %s with --ca, --cert or --key: connections to it are not encrypted", cli.Printable(c.Address))
	}
	config, err := c.config()
	if err != nil {
		return nil, "", err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, strings.TrimSuffix(address, "/"), nil
}

// config returns what --ca, --cert and --key say.
func (c *Client) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if (c.Cert == "") != (c.Key == "") {
		return nil, cli.Misusef("name both: --cert me.pem --key me.key", "--cert and --key: one is missing")
	}
	if c.CA != "" {
		text, err := cli.ReadFile(c.CA, maxPEM)
		if err != nil {
			return nil, cli.Fail(fmt.Errorf("--ca: %w", err), "the file has certificates of authorities in PEM")
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, cli.Fail(fmt.Errorf("--ca: %s has no certificate in PEM", cli.Printable(c.CA)), "it begins with -----BEGIN CERTIFICATE-----")
		}
	}
	if c.Cert != "" {
		own, err := readPair(c.Cert, c.Key)
		if err != nil {
			return nil, cli.Fail(fmt.Errorf("--cert %s, --key %s: %w", cli.Printable(c.Cert), cli.Printable(c.Key), err), "each file is in PEM, and the key is that of the certificate")
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// maxPEM bounds a file of certificates or of a key, in bytes.
const maxPEM = 4 << 20

func readPair(cert, key string) (tls.Certificate, error) {
	certificate, err := cli.ReadFile(cert, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := cli.ReadFile(key, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, secret)
}

// unanswered explains why the daemon did not answer.
func unanswered(err error) error {
	hint := "weir serve prints the address of its admin port; --admin names it"
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		hint = "name the authority that has signed the certificate of the daemon: --ca FILE"
	}
	return cli.Fail(fmt.Errorf("the daemon does not answer: %w", unwrapURL(err)), hint)
}
